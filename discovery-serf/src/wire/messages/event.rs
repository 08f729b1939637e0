//! Records of a stream.

use serde::Deserialize;
use serde_bytes::ByteBuf;

use super::{DecodeError, decode, member};
use crate::client::{Event, MemberEventKind};
use crate::member::Member;
use crate::wire::text::Text;

/// The body of a record. A kind of event that is not known is [`Event::Other`].
pub(crate) fn decode_event(frame: &[u8]) -> Result<Event, DecodeError> {
    /// The fields of all kinds of events.
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Fields {
        event: Text,
        #[serde(default, deserialize_with = "member::members")]
        members: Vec<Member>,
        #[serde(default, rename = "ID")]
        id: Option<u64>,
        #[serde(default)]
        name: Text,
        #[serde(default)]
        payload: Option<ByteBuf>,
        #[serde(default, rename = "LTime")]
        logical_time: Option<u64>,
        #[serde(default)]
        coalesce: Option<bool>,
    }
    let fields: Fields = decode("an event", frame)?;
    let kind = fields.event.lossy();
    let name = fields.name.lossy();
    let payload = fields.payload.map(ByteBuf::into_vec).unwrap_or_default();
    let logical_time = fields.logical_time.unwrap_or_default();
    Ok(match (&*kind, MemberEventKind::parse(&kind)) {
        (_, Some(kind)) => Event::Member {
            kind,
            members: fields.members,
        },
        ("user", _) => Event::User {
            name: name.into(),
            payload,
            logical_time,
            coalesce: fields.coalesce.unwrap_or_default(),
        },
        ("query", _) => Event::Query {
            id: fields.id.unwrap_or_default(),
            name: name.into(),
            payload,
            logical_time,
        },
        _ => Event::Other { kind: kind.into() },
    })
}
