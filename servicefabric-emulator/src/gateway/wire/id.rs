use super::{ApiError, ApiVersion};
use crate::cluster::FabricName;

/// The id of a name as this version writes it: `App~Svc%20x`, and `App/Svc%20x` before version 6.0.
pub(crate) fn id_of(name: &FabricName, version: ApiVersion) -> String {
    let id = name.id();
    if version >= ApiVersion::TILDE {
        return id;
    }
    // Names have no `~` of their own.
    id.replace('~', "/")
}

/// The id of a replica or an instance: a decimal number with 64 bits and a sign.
pub(crate) fn parse_replica_id(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::invalid(format!(
            "`{text}` is not the id of a replica: a decimal number of 64 bits is"
        ))
    })
}
