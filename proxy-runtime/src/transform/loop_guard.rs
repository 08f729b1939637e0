//! Protection against loops: a request that comes back to the proxy that forwarded it gets 508.
//!
//! Each proxy adds a random member of its own to `CDN-Loop` (RFC 8586) of forwarded requests. A request with this
//! member is in a loop. Two proxies in a chain have two members, and so have a proxy and its successor.

use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use proxy_model::RequestHead;
use proxy_model::compiled::Route;
use proxy_model::transform::RequestTransform;

use crate::head::headers::CDN_LOOP;
use crate::transform::CompiledTransforms;

/// The mark that one proxy adds to forwarded requests, and its detection.
#[derive(Debug)]
pub(crate) struct LoopGuard {
    member: HeaderValue,
    /// CRLF, the name of the field and the member: heads of HTTP/1.1 end with it.
    line: Arc<[u8]>,
    /// The plan that routes without changes share.
    unchanged: OnceLock<Arc<CompiledTransforms>>,
}

impl LoopGuard {
    /// Creates a guard with a unique member of `CDN-Loop`.
    pub(crate) fn new() -> Self {
        Self::with_number(fastrand::u64(..))
    }

    /// Creates a guard for explanations without a running proxy. Its number is a placeholder.
    pub(crate) fn unnumbered() -> Self {
        Self::with_number(0)
    }

    fn with_number(number: u64) -> Self {
        let member = format!("proxy-{number:016x}");
        Self {
            line: format!("\r\nCDN-Loop: {member}").into_bytes().into(),
            unchanged: OnceLock::new(),
            member: HeaderValue::try_from(member).expect("hexadecimal digits are text"),
        }
    }

    /// The member.
    #[cfg(test)]
    pub(crate) fn member(&self) -> &HeaderValue {
        &self.member
    }

    /// The field as the last line of a head of HTTP/1.1, with the CRLF in front of it.
    pub(crate) fn line(&self) -> Arc<[u8]> {
        Arc::clone(&self.line)
    }

    /// The plan of routes that change nothing, which `make` makes.
    pub(crate) fn unchanged(
        &self,
        make: impl FnOnce() -> Arc<CompiledTransforms>,
    ) -> Arc<CompiledTransforms> {
        Arc::clone(self.unchanged.get_or_init(make))
    }

    /// Returns true if this proxy has forwarded the request before.
    #[cold]
    pub(crate) fn has_forwarded<H: RequestHead + ?Sized>(&self, head: &H) -> bool {
        let mut is_known = false;
        head.for_each_header(CDN_LOOP.as_str(), &mut |value| {
            is_known = self.is_in(value);
            // False ends the search.
            !is_known
        });
        is_known
    }

    /// Returns true if a value contains the proxy's member, ignoring parameters.
    fn is_in(&self, value: &[u8]) -> bool {
        let id = |member: &[u8]| {
            let end = member.iter().position(|byte| *byte == b';');
            member[..end.unwrap_or(member.len())].trim_ascii() == self.member.as_bytes()
        };
        value.split(|byte| *byte == b',').any(id)
    }
}

/// Returns true if requests of a route are guarded: not if the route removes the field.
pub(crate) fn guards(route: &Route) -> bool {
    // An operator who removes the field does not want it sent, so the proxy must not add it again.
    let removes = |transform: &RequestTransform| matches!(transform, RequestTransform::Remove(name) if *name == CDN_LOOP);
    !route.transforms().request().iter().any(removes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_recognised_among_others() {
        let guard = LoopGuard::new();
        let own = guard.member().to_str().unwrap();
        for (value, expected) in [
            (own.to_owned(), true),
            (format!("cloud.example, {own}"), true),
            (format!("{own};x=1 , other"), true),
            (format!("  {own}\t"), true),
            (String::new(), false),
            (format!("{own}0"), false),
            (format!("a{own}"), false),
            (format!("other; by=\"{own}\""), false),
            (
                LoopGuard::new().member().to_str().unwrap().to_owned(),
                false,
            ),
        ] {
            assert_eq!(guard.is_in(value.as_bytes()), expected, "{value}");
        }
    }
}
