//! Small messages that are written often.

use std::time::Duration;

use prost::{Message, Name};
use xds_types::pb::envoy::config::route::v3::DirectResponseAction;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::r#type::matcher::v3::RegexMatcher;
use xds_types::pb::google::protobuf::{Any, Duration as ProtoDuration, UInt32Value};

/// A length of time. Too long ones become the longest that the format has.
pub(crate) fn duration(time: Duration) -> ProtoDuration {
    // https://protobuf.dev/reference/protobuf/google.protobuf/#duration
    const MOST_SECONDS: u64 = 315_576_000_000;
    ProtoDuration {
        seconds: time.as_secs().min(MOST_SECONDS).cast_signed(),
        nanos: time.subsec_nanos().cast_signed(),
    }
}

/// A number that may be absent.
pub(crate) fn number(value: u32) -> UInt32Value {
    UInt32Value { value }
}

/// Returns the action of a route to a missing cluster: it responds with 503.
pub(crate) fn unavailable() -> Action {
    Action::DirectResponse(DirectResponseAction {
        status: 503,
        ..DirectResponseAction::default()
    })
}

/// A regular expression in RE2's syntax.
pub(crate) fn regex(regex: impl Into<String>) -> RegexMatcher {
    RegexMatcher {
        regex: regex.into(),
        ..RegexMatcher::default()
    }
}

/// A message with its type.
pub(crate) fn any<M: Name + Message>(message: &M) -> Any {
    Any {
        type_url: M::type_url(),
        value: message.encode_to_vec(),
    }
}

/// The message in it, if it is of that type and can be read.
pub(crate) fn unpacked<M: Name + Default>(any: &Any) -> Option<M> {
    (any.type_url == M::type_url())
        .then(|| M::decode(any.value.as_slice()).ok())
        .flatten()
}
