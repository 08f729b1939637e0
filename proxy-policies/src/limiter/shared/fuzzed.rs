//! The reader of replies, as fuzz targets call it.

use super::connection::decision;
use super::resp::{LONGEST_PART, Reply, read_reply};

/// The most bytes that can be there of a reply that is not complete.
pub const MOST_OF_A_REPLY: usize = LONGEST_PART;

/// The result of reading a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuzzedReply {
    /// There is more to come.
    Part,
    /// No reply, or one that no limiter gets.
    Invalid,
    /// A reply of so many bytes.
    Whole {
        /// The number of bytes.
        length: usize,
        /// The reply as a reader in a few lines would show it.
        shown: String,
        /// The decision: whether a request passes, what is left, and the milliseconds until there is more.
        decision: Option<(bool, u32, u128)>,
    },
}

/// Reads the reply that the bytes begin with.
pub fn fuzz_redis_reply(input: &[u8]) -> FuzzedReply {
    match read_reply(input) {
        Ok(None) => FuzzedReply::Part,
        Err(_) => FuzzedReply::Invalid,
        Ok(Some((reply, length))) => FuzzedReply::Whole {
            length,
            shown: shown(&reply),
            decision: decision(&reply)
                .ok()
                .map(|made| (made.may_pass, made.left, made.reset.as_millis())),
        },
    }
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Text(text) => format!("text {}", text.escape_ascii()),
        Reply::Number(number) => format!("number {number}"),
        Reply::Error(error) => format!("error {error:?}"),
        Reply::List(elements) => {
            let elements: Vec<_> = elements.iter().map(shown).collect();
            format!("[{}]", elements.join(", "))
        }
        Reply::Nothing => "nothing".to_owned(),
    }
}
