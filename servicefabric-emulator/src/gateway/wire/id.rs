use super::{ApiError, ApiVersion};
use crate::cluster::FabricName;

/// Returns the id of a name in this version's form: `App~Svc%20x`, or `App/Svc%20x` before version 6.0.
pub(crate) fn id_of(name: &FabricName, version: ApiVersion) -> String {
    let id = name.id();
    if version >= ApiVersion::TILDE {
        return id;
    }
    // Names contain no `~`.
    id.replace('~', "/")
}

/// Parses the id of a replica or an instance: a signed 64-bit decimal number.
pub(crate) fn parse_replica_id(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::invalid(format!(
            "`{text}` is not the id of a replica: a decimal number of 64 bits is"
        ))
    })
}
