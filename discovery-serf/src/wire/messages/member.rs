//! Members.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_bytes::ByteBuf;

use super::{DecodeError, decode};
use crate::member::{Member, MemberStatus, Tags, address_of};
use crate::wire::text::Text;

/// The body of the reply to `members` and `members-filtered`.
pub(crate) fn decode_members(frame: &[u8]) -> Result<Vec<Member>, DecodeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Fields {
        // The field is required. Without it, a wrong reply would be a cluster without members.
        #[serde(deserialize_with = "members")]
        members: Vec<Member>,
    }
    decode::<Fields>("the list of members", frame).map(|fields| fields.members)
}

/// A list of members, or nil for none.
pub(super) fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Member>, D::Error> {
    /// A member in its wire format.
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Wire {
        name: Text,
        #[serde(default)]
        addr: Option<ByteBuf>,
        #[serde(default)]
        port: Option<u16>,
        #[serde(default)]
        tags: Option<BTreeMap<Text, Text>>,
        #[serde(default)]
        status: Option<Text>,
    }

    impl From<Wire> for Member {
        fn from(wire: Wire) -> Self {
            let tags = wire.tags.unwrap_or_default();
            Self {
                name: wire.name.lossy().into(),
                address: wire.addr.as_deref().and_then(|bytes| address_of(bytes)),
                port: wire.port.unwrap_or_default(),
                tags: tags
                    .into_iter()
                    .map(|(key, value)| (key.0, value.0))
                    .collect(),
                status: MemberStatus::parse(&wire.status.unwrap_or_default().lossy()),
            }
        }
    }

    /// A member. Members are read one by one, so that only one of them exists in two forms.
    #[derive(Deserialize)]
    #[serde(from = "Wire")]
    struct Read(Member);

    impl From<Wire> for Read {
        fn from(wire: Wire) -> Self {
            Self(wire.into())
        }
    }

    let members = Option::<Vec<Read>>::deserialize(deserializer)?;
    Ok(members
        .into_iter()
        .flatten()
        .map(|Read(member)| member)
        .collect())
}

/// Tags, or nil for none.
pub(super) fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tags, D::Error> {
    let tags = Option::<BTreeMap<Text, Text>>::deserialize(deserializer)?;
    Ok(tags
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.0, value.0))
        .collect())
}
