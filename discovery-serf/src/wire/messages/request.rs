//! Commands.

use std::collections::BTreeMap;

use crate::client::AuthKey;
use crate::member::Tags;
use crate::wire::encode::Encoder;

/// The requests of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Handshake {
        version: i32,
    },
    Auth {
        key: AuthKey,
    },
    Members,
    MembersFiltered {
        /// Patterns by key.
        tags: BTreeMap<String, String>,
        status: String,
        name: String,
    },
    Stream {
        filter: String,
    },
    Stop {
        seq: u64,
    },
    Event {
        name: String,
        payload: Vec<u8>,
        coalesce: bool,
    },
    Join {
        addresses: Vec<String>,
        replay: bool,
    },
    Leave,
    ForceLeave {
        node: String,
        prune: bool,
    },
    Tags {
        set: Tags,
        delete: Vec<String>,
    },
    Stats,
    /// A command that this version does not know. In tests, an agent may receive one.
    #[cfg(any(test, feature = "testing"))]
    Other {
        command: String,
    },
}

/// The presence of a body after the header of a reply, which is not visible on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyBody {
    Never,
    OnSuccess,
    /// A body follows errors too, unless the agent has not handled the command.
    Always,
}

/// Errors of an agent that has not handled the command: no body follows, for every command.
pub(crate) const AUTHENTICATION_REQUIRED: &str = "Authentication required";
pub(crate) const HANDSHAKE_REQUIRED: &str = "Handshake required";
pub(crate) const UNSUPPORTED_COMMAND: &str = "Unsupported command";

impl ReplyBody {
    /// Returns true if a body follows a header with this error, which is empty for success.
    pub(crate) fn follows(self, error: &str) -> bool {
        match (self, error) {
            (Self::Never, _) => false,
            (_, "") => true,
            (Self::OnSuccess, _)
            | (_, AUTHENTICATION_REQUIRED | HANDSHAKE_REQUIRED | UNSUPPORTED_COMMAND) => false,
            (Self::Always, _) => true,
        }
    }
}

impl Request {
    /// The name of the command.
    pub(crate) fn command(&self) -> &str {
        match self {
            Self::Handshake { .. } => "handshake",
            Self::Auth { .. } => "auth",
            Self::Members => "members",
            Self::MembersFiltered { .. } => "members-filtered",
            Self::Stream { .. } => "stream",
            Self::Stop { .. } => "stop",
            Self::Event { .. } => "event",
            Self::Join { .. } => "join",
            Self::Leave => "leave",
            Self::ForceLeave { .. } => "force-leave",
            Self::Tags { .. } => "tags",
            Self::Stats => "stats",
            #[cfg(any(test, feature = "testing"))]
            Self::Other { command } => command,
        }
    }

    /// The presence of a body in the reply.
    pub(crate) fn reply_body(&self) -> ReplyBody {
        match self {
            Self::Members | Self::MembersFiltered { .. } | Self::Stats => ReplyBody::OnSuccess,
            Self::Join { .. } => ReplyBody::Always,
            _ => ReplyBody::Never,
        }
    }

    /// The approximate length: the bytes of texts and payloads, and a few for each of them.
    pub(crate) fn content_len(&self) -> usize {
        let all = |texts: &[String]| texts.iter().map(|text| text.len() + 5).sum::<usize>();
        let of_map = |(key, value): (&[u8], &[u8])| key.len() + value.len() + 10;
        match self {
            Self::Handshake { .. }
            | Self::Members
            | Self::Leave
            | Self::Stats
            | Self::Stop { .. } => 0,
            Self::Auth { key } => key.reveal().len(),
            Self::MembersFiltered { tags, status, name } => {
                let tags = tags.iter();
                let tags = tags.map(|(key, value)| of_map((key.as_bytes(), value.as_bytes())));
                tags.sum::<usize>() + status.len() + name.len()
            }
            Self::Stream { filter } => filter.len(),
            Self::Event { name, payload, .. } => name.len() + payload.len(),
            Self::Join { addresses, .. } => all(addresses),
            Self::ForceLeave { node, .. } => node.len(),
            Self::Tags { set, delete } => set.iter().map(of_map).sum::<usize>() + all(delete),
            #[cfg(any(test, feature = "testing"))]
            Self::Other { command } => command.len(),
        }
    }

    /// Writes the header, and the body of the commands that take one.
    pub(crate) fn encode(&self, seq: u64, out: &mut Vec<u8>) {
        let mut out = Encoder::new(out);
        out.map(2);
        out.text("Command").text(self.command());
        out.text("Seq").uint(seq);
        match self {
            Self::Handshake { version } => {
                // Versions are not negative; a request with a negative one is invalid.
                let version = u64::try_from(*version).unwrap_or_default();
                out.map(1).text("Version").uint(version);
            }
            Self::Auth { key } => {
                out.map(1).text("AuthKey").text(key.reveal());
            }
            Self::MembersFiltered { tags, status, name } => {
                out.map(3).text("Tags").map(tags.len());
                for (key, pattern) in tags {
                    out.text(key).text(pattern);
                }
                out.text("Status").text(status).text("Name").text(name);
            }
            Self::Stream { filter } => {
                out.map(1).text("Type").text(filter);
            }
            Self::Stop { seq } => {
                out.map(1).text("Stop").uint(*seq);
            }
            Self::Event {
                name,
                payload,
                coalesce,
            } => {
                out.map(3).text("Name").text(name);
                out.text("Payload").bytes(payload);
                out.text("Coalesce").boolean(*coalesce);
            }
            Self::Join { addresses, replay } => {
                out.map(2).text("Existing");
                texts(&mut out, addresses);
                out.text("Replay").boolean(*replay);
            }
            Self::ForceLeave { node, prune } => {
                out.map(2).text("Node").text(node);
                out.text("Prune").boolean(*prune);
            }
            Self::Tags { set, delete } => {
                out.map(2).text("Tags").map(set.len());
                for (key, value) in set.iter() {
                    out.text(key).text(value);
                }
                out.text("DeleteTags");
                texts(&mut out, delete);
            }
            Self::Members | Self::Leave | Self::Stats => {}
            #[cfg(any(test, feature = "testing"))]
            Self::Other { .. } => {}
        }
    }
}

fn texts(out: &mut Encoder<'_>, texts: &[String]) {
    out.array(texts.len());
    for text in texts {
        out.text(text);
    }
}
