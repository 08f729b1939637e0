//! The endpoints of gateways.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use url::{Host, Url};

use super::builder::BuildError;

/// Address of a gateway.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct GatewayEndpoint {
    /// Scheme, authority, and the path that a proxy in front may require, without a slash at the end.
    base: String,
    secure: bool,
    loopback: bool,
}

impl GatewayEndpoint {
    pub(super) fn parse(text: &str) -> Result<Self, BuildError> {
        let wrong = |reason| BuildError::endpoint(text, reason);
        let Ok(url) = Url::parse(text.trim()) else {
            return Err(wrong(
                "it is not a URL such as `https://node1.cluster.example:19080`",
            ));
        };
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("it does not begin with `http://` or `https://`")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "it has a user or a password, which gateways do not know",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        let loopback = match url.host() {
            Some(Host::Domain(name)) => {
                name.eq_ignore_ascii_case("localhost")
                    || name.to_ascii_lowercase().ends_with(".localhost")
            }
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(wrong("it has no host")),
        };
        Ok(Self {
            base: url.as_str().trim_end_matches('/').to_owned(),
            secure,
            loopback,
        })
    }

    /// The URL that the path of a call is appended to.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns true if the endpoint uses TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns true if the traffic is unencrypted and leaves the machine.
    pub(super) fn is_exposed(&self) -> bool {
        !self.secure && !self.loopback
    }
}

impl fmt::Debug for GatewayEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// The gateways of a cluster. One is used until it cannot be reached.
pub(super) struct GatewayEndpoints {
    list: Vec<GatewayEndpoint>,
    current: AtomicUsize,
    /// True if one of the endpoints has ever answered.
    answered: AtomicBool,
}

impl GatewayEndpoints {
    /// Creates the endpoints. `list` is not empty.
    pub(super) fn new(list: Vec<GatewayEndpoint>) -> Self {
        debug_assert!(!list.is_empty());
        Self {
            list,
            current: AtomicUsize::new(0),
            answered: AtomicBool::new(false),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The index of the endpoint that calls try first.
    pub(super) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// The endpoint at an index.
    pub(super) fn at(&self, place: usize) -> &GatewayEndpoint {
        &self.list[place]
    }

    /// Records that one of them has responded.
    pub(super) fn have_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Returns true if there are several endpoints and it is not known which of them works.
    pub(super) fn are_untried(&self) -> bool {
        self.list.len() > 1 && !self.answered.load(Ordering::Relaxed)
    }

    /// The place after this one.
    pub(super) fn after(&self, place: usize) -> usize {
        (place + 1) % self.list.len()
    }

    /// Calls begin with the next from now on, unless another call has seen to that already.
    pub(super) fn leave(&self, place: usize) {
        let next = self.after(place);
        let _ = self
            .current
            .compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes later calls begin with this one, since it succeeded where another one failed.
    pub(super) fn stay(&self, place: usize) {
        self.current.store(place, Ordering::Relaxed);
    }
}

impl fmt::Debug for GatewayEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls_of_gateways() {
        let cases = [
            (
                "http://localhost:19080",
                Ok(("http://localhost:19080", false)),
            ),
            ("https://n1:19080/", Ok(("https://n1:19080", false))),
            (" https://n1 ", Ok(("https://n1", false))),
            ("http://n1:19080/sf/", Ok(("http://n1:19080/sf", true))),
            ("HTTP://N1:80", Ok(("http://n1", true))),
            ("http://127.0.0.2:1", Ok(("http://127.0.0.2:1", false))),
            ("http://[::1]:1", Ok(("http://[::1]:1", false))),
            (
                "http://[2001:db8::1]:1",
                Ok(("http://[2001:db8::1]:1", true)),
            ),
            ("n1:19080", Err("does not begin with")),
            ("n1", Err("not a URL")),
            ("tcp://n1:19000", Err("does not begin with")),
            ("https://user:hunter2@n1", Err("a user or a password")),
            ("https://n1?x=1", Err("a query")),
            ("https://n1#x", Err("a fragment")),
            ("", Err("not a URL")),
        ];
        for (text, expected) in cases {
            match (GatewayEndpoint::parse(text), expected) {
                (Ok(endpoint), Ok((base, exposed))) => {
                    assert_eq!(endpoint.base(), base);
                    assert_eq!(endpoint.is_exposed(), exposed, "{text}");
                }
                (Err(error), Err(reason)) => {
                    let error = error.to_string();
                    assert!(error.contains(reason), "{text}: {error}");
                    assert!(!error.contains("hunter2"), "{error}");
                }
                (result, expected) => panic!("{text}: {result:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_gateway_is_left_once_however_many_calls_fail() {
        let parse = |text| GatewayEndpoint::parse(text).unwrap();
        let endpoints = GatewayEndpoints::new(vec![
            parse("http://a"),
            parse("http://b"),
            parse("http://c"),
        ]);
        let current = || endpoints.at(endpoints.current()).base();
        let first = endpoints.current();
        endpoints.leave(first);
        endpoints.leave(first);
        assert_eq!(current(), "http://b");
        endpoints.leave(1);
        endpoints.leave(2);
        assert_eq!(current(), "http://a");
        endpoints.stay(2);
        assert_eq!(current(), "http://c");
    }
}
