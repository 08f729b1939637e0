//! The agent's side of the messages, for agents of tests: requests are read, replies are written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_bytes::ByteBuf;

use super::{DecodeError, Request, decode, member};
use crate::client::Event;
use crate::member::{Member, Tags};
use crate::wire::encode::Encoder;
use crate::wire::text::Text;

/// The first part of each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) command: String,
    pub(crate) seq: u64,
}

impl RequestHeader {
    pub(crate) fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        #[derive(Default)]
        struct Fields {
            command: Text,
            seq: u64,
        }
        let fields: Fields = decode("the header of a request", frame)?;
        Ok(Self {
            command: fields.command.lossy().into_owned(),
            seq: fields.seq,
        })
    }

    /// Returns true if the command takes a body, which is the next message.
    pub(crate) fn takes_body(&self) -> bool {
        matches!(
            &*self.command,
            "handshake"
                | "auth"
                | "members-filtered"
                | "stream"
                | "stop"
                | "event"
                | "join"
                | "force-leave"
                | "tags"
        )
    }
}

impl Request {
    /// Reads the body that belongs to a header. It is ignored for commands without one.
    pub(crate) fn decode(header: &RequestHeader, body: &[u8]) -> Result<Self, DecodeError> {
        /// The fields of all bodies. No two commands mean different things with the same name.
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        struct Fields {
            version: i32,
            auth_key: Text,
            #[serde(deserialize_with = "member::tags")]
            tags: Tags,
            delete_tags: Option<Vec<Text>>,
            status: Text,
            name: Text,
            r#type: Text,
            stop: u64,
            payload: Option<ByteBuf>,
            coalesce: bool,
            existing: Option<Vec<Text>>,
            replay: bool,
            node: Text,
            prune: bool,
        }
        let owned = |text: &Text| text.lossy().into_owned();
        let list =
            |texts: Option<Vec<Text>>| texts.iter().flatten().map(owned).collect::<Vec<String>>();
        let fields = if header.takes_body() {
            decode::<Option<Fields>>("the body of a request", body)?.unwrap_or_default()
        } else {
            Fields::default()
        };
        Ok(match &*header.command {
            "handshake" => Self::Handshake {
                version: fields.version,
            },
            "auth" => Self::Auth {
                key: owned(&fields.auth_key).into(),
            },
            "members" => Self::Members,
            "members-filtered" => Self::MembersFiltered {
                tags: patterns(&fields.tags),
                status: owned(&fields.status),
                name: owned(&fields.name),
            },
            "stream" => Self::Stream {
                filter: owned(&fields.r#type),
            },
            "stop" => Self::Stop { seq: fields.stop },
            "event" => Self::Event {
                name: owned(&fields.name),
                payload: fields.payload.map(ByteBuf::into_vec).unwrap_or_default(),
                coalesce: fields.coalesce,
            },
            "join" => Self::Join {
                addresses: list(fields.existing),
                replay: fields.replay,
            },
            "leave" => Self::Leave,
            "force-leave" => Self::ForceLeave {
                node: owned(&fields.node),
                prune: fields.prune,
            },
            "tags" => Self::Tags {
                set: fields.tags,
                delete: list(fields.delete_tags),
            },
            "stats" => Self::Stats,
            other => Self::Other {
                command: other.to_owned(),
            },
        })
    }
}

fn patterns(tags: &Tags) -> BTreeMap<String, String> {
    let lossy = |bytes| String::from_utf8_lossy(bytes).into_owned();
    tags.iter()
        .map(|(key, pattern)| (lossy(key), lossy(pattern)))
        .collect()
}

/// Writes the body of the reply to `members`, in the agent's order of fields.
pub(crate) fn encode_members(members: &[Member], out: &mut Vec<u8>) {
    let mut out = Encoder::new(out);
    out.map(1).text("Members");
    encode_list(members, &mut out);
}

/// Writes the body of the reply to `join`.
pub(crate) fn encode_joined(joined: u32, out: &mut Vec<u8>) {
    Encoder::new(out).map(1).text("Num").uint(joined.into());
}

/// Writes the body of the reply to `stats`.
pub(crate) fn encode_stats(sections: &BTreeMap<String, Tags>, out: &mut Vec<u8>) {
    let mut out = Encoder::new(out);
    out.map(sections.len());
    for (name, values) in sections {
        out.text(name);
        encode_tags(values, &mut out);
    }
}

/// Writes the body of a record of a stream.
pub(crate) fn encode_event(event: &Event, out: &mut Vec<u8>) {
    let mut out = Encoder::new(out);
    match event {
        Event::Member { kind, members } => {
            out.map(2).text("Event").text(kind.as_str()).text("Members");
            encode_list(members, &mut out);
        }
        Event::User {
            name,
            payload,
            logical_time,
            coalesce,
        } => {
            out.map(5).text("Coalesce").boolean(*coalesce);
            out.text("Event").text("user");
            out.text("LTime").uint(*logical_time);
            out.text("Name").text(&**name);
            out.text("Payload").bytes(payload);
        }
        Event::Query {
            id,
            name,
            payload,
            logical_time,
        } => {
            out.map(5).text("Event").text("query");
            out.text("ID").uint(*id);
            out.text("LTime").uint(*logical_time);
            out.text("Name").text(&**name);
            out.text("Payload").bytes(payload);
        }
        Event::Other { kind } => {
            out.map(1).text("Event").text(&**kind);
        }
    }
}

fn encode_list(members: &[Member], out: &mut Encoder<'_>) {
    out.array(members.len());
    for member in members {
        encode_member(member, out);
    }
}

fn encode_member(member: &Member, out: &mut Encoder<'_>) {
    out.map(11).text("Addr");
    match member.address {
        Some(IpAddr::V4(address)) => out.bytes(&address.octets()),
        Some(IpAddr::V6(address)) => out.bytes(&address.octets()),
        None => out.bytes(&[]),
    };
    // Versions of the gossip, as agents of 0.9 and 0.10 have them.
    out.text("DelegateCur").uint(5).text("DelegateMax").uint(5);
    out.text("DelegateMin").uint(2);
    out.text("Name").text(&*member.name);
    out.text("Port").uint(member.port.into());
    out.text("ProtocolCur").uint(2).text("ProtocolMax").uint(5);
    out.text("ProtocolMin").uint(1);
    out.text("Status").text(member.status.as_str()).text("Tags");
    encode_tags(&member.tags, out);
}

fn encode_tags(tags: &Tags, out: &mut Encoder<'_>) {
    out.map(tags.len());
    for (key, value) in tags.iter() {
        out.text(key).text(value);
    }
}
