//! The version of HTTP that a request is sent in.

use proxy_model::compiled::{Scheme, Upstream};

use super::super::protocol::{Protocols, for_request, for_upgrade};
use crate::fixtures::snapshot;

fn upstream(version: &str, policy: &str) -> Upstream {
    let policy = match policy {
        "" => String::new(),
        policy => format!(r#", "VersionPolicy": "RequestVersion{policy}""#),
    };
    let snapshot = snapshot(&format!(
        r#"{{ "Clusters": {{ "c": {{ "HttpRequest": {{ "Version": "{version}" {policy} }} }} }} }}"#
    ));
    snapshot.clusters()[0].upstream().clone()
}

#[test]
fn versions_are_chosen_as_dotnet_chooses_them() {
    use Protocols::{Either, Http1, Http2};
    for (version, policy, http, https) in [
        ("1.0", "OrLower", Some(Http1), Some(Http1)),
        ("1.0", "Exact", Some(Http1), Some(Http1)),
        ("1.1", "OrLower", Some(Http1), Some(Http1)),
        ("1.1", "Exact", Some(Http1), Some(Http1)),
        ("1.1", "OrHigher", Some(Http1), Some(Either)),
        // The default.
        ("2", "", Some(Http1), Some(Either)),
        ("2", "OrLower", Some(Http1), Some(Either)),
        ("2", "OrHigher", Some(Http2), Some(Http2)),
        ("2", "Exact", Some(Http2), Some(Http2)),
        ("3", "OrLower", Some(Http1), Some(Either)),
        ("3", "OrHigher", None, None),
        ("3", "Exact", None, None),
    ] {
        // Without HTTP/2, what demands it cannot be had, and what prefers it makes do.
        let built = |chosen: Option<Protocols>| match chosen {
            Some(Http2) if cfg!(not(feature = "http2")) => None,
            Some(Either) if cfg!(not(feature = "http2")) => Some(Http1),
            chosen => chosen,
        };
        let (http, https) = (built(http), built(https));
        let upstream = upstream(version, policy);
        let chosen = |scheme| for_request(scheme, &upstream).ok();
        assert_eq!(chosen(Scheme::Http), http, "{version} {policy} http");
        assert_eq!(chosen(Scheme::Https), https, "{version} {policy} https");
    }
}

/// N03 to N10: an upgrade of HTTP/1.1 wherever that is allowed, and CONNECT of HTTP/2 where nothing else is.
#[test]
fn n03_to_n10_upgrades() {
    use Protocols::{Http1, Http2};
    for (version, policy, websocket, other) in [
        ("1.1", "OrHigher", Some(Http1), Some(Http1)),
        ("1.1", "Exact", Some(Http1), Some(Http1)),
        ("2", "OrLower", Some(Http1), Some(Http1)),
        ("2", "Exact", Some(Http2), None),
        ("2", "OrHigher", Some(Http2), None),
        ("3", "OrLower", Some(Http1), Some(Http1)),
        ("3", "Exact", None, None),
        ("3", "OrHigher", None, None),
    ] {
        let websocket = websocket.filter(|p| cfg!(feature = "http2") || *p == Http1);
        let upstream = upstream(version, policy);
        assert_eq!(
            for_upgrade(&upstream, true).ok(),
            websocket,
            "{version} {policy}"
        );
        assert_eq!(
            for_upgrade(&upstream, false).ok(),
            other,
            "{version} {policy}"
        );
    }
}
