//! Requests as text, and the explanation of their handling.

use std::sync::LazyLock;

use http::HeaderName;
use http::header::{CONNECTION, HOST};
use http::request::Parts;
use proxy_model::config::ProxyConfig;
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::explain::{
    Explanation, ForwardedRequest, ParsedRequest, ProxySettings, Verdict, request_from_text,
};
use proxy_runtime::server::{Limits, ListenerRules};

use crate::input::{Head, text};

/// A configuration with one of each feature.
static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    let config = ProxyConfig::from_json(include_str!("explain.json"));
    let config = config.unwrap_or_else(|problems| panic!("{problems}"));
    let compiled = Snapshot::compile(config, &CompileOptions::default());
    compiled.unwrap_or_else(|problems| panic!("{problems}")).0
});

/// Fuzzes a method, a URL and headers, one per line.
///
/// * Invalid text is rejected with one line without control characters. A request that the server
///   rejects has a status and a reason.
/// * The outcome is that of the route table for the same request in another form.
/// * Every route either matches the request or has a reason why not.
/// * The forwarded request is valid, without fields of the client's connection.
pub fn explain(data: &[u8]) {
    let text = text(data);
    let mut lines = text.lines();
    let method = lines.next().unwrap_or_default();
    let url = lines.next().unwrap_or_default();
    let (limits, rules) = (Limits::default(), ListenerRules::default());
    let (parts, connection) = match request_from_text(method, url, lines, &limits, rules, None) {
        Ok(ParsedRequest::Request(parts, connection)) => (parts, connection),
        Ok(ParsedRequest::Rejected(explanation)) => {
            assert_eq!(explanation.outcome, Verdict::Rejected);
            assert!(
                explanation
                    .status
                    .is_some_and(|status| status.is_client_error() || status.is_server_error())
            );
            assert!(
                explanation
                    .rejected
                    .is_some_and(|reason| !reason.is_empty())
            );
            return;
        }
        Err(error) => {
            assert!(
                !error.is_empty() && !error.contains(char::is_control),
                "{error:?}"
            );
            return;
        }
    };
    let explanation =
        proxy_runtime::explain::explain(&SNAPSHOT, &ProxySettings::default(), &parts, connection);
    check_route(&explanation, &SNAPSHOT.find(&head(&parts, connection.tls)));
    let considered = explanation.considered.len() + explanation.considered_omitted;
    let taken = usize::from(explanation.route.is_some());
    assert_eq!(considered + taken, SNAPSHOT.routes().len());
    if let Some(forwarded) = &explanation.forwarded {
        assert_eq!(explanation.outcome, Verdict::Matched);
        check_forwarded(forwarded, &parts);
    }
    let json = serde_json::to_value(&explanation).expect("it is made of plain data");
    assert!(json["outcome"].is_string());
}

/// The same request in the form of the route table.
fn head(parts: &Parts, is_https: bool) -> Head<'_> {
    let authority = parts.headers.get(HOST).map(http::HeaderValue::as_bytes);
    Head {
        method: parts.method.as_str(),
        authority: authority
            .and_then(|host| str::from_utf8(host).ok())
            .unwrap_or_default(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        is_https,
        headers: parts
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect(),
    }
}

fn check_route(explanation: &Explanation, found: &Lookup) {
    match found {
        Lookup::Matched(index) => {
            assert_eq!(
                explanation.route.as_ref(),
                Some(SNAPSHOT.route_at(*index).id())
            );
        }
        Lookup::MethodNotAllowed(methods) => {
            assert_eq!(explanation.outcome, Verdict::MethodNotAllowed);
            assert!(
                methods.iter().eq(explanation.allow.iter()),
                "{explanation:?}"
            );
        }
        Lookup::NotFound => assert_eq!(explanation.outcome, Verdict::NotFound),
    }
    let by_the_proxy = explanation.status.is_some();
    assert_eq!(
        by_the_proxy,
        explanation.outcome != Verdict::Matched,
        "{explanation:?}"
    );
}

fn check_forwarded(forwarded: &ForwardedRequest, parts: &Parts) {
    let uri: http::Uri = forwarded.uri.parse().expect("it is sent as one");
    assert!(uri.authority().is_some(), "{uri}");
    assert!(forwarded.method.parse::<http::Method>().is_ok());
    let count = |wanted: &str| {
        let same = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(wanted);
        forwarded.headers.iter().filter(same).count()
    };
    assert_eq!(count("host"), 1, "{forwarded:?}");
    for hop in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "upgrade",
    ] {
        assert_eq!(count(hop), 0, "{hop}: {forwarded:?}");
    }
    // The framing is the proxy's own, and there is one only for a body.
    let framings = count("transfer-encoding") + count("content-length");
    assert!(framings <= 1, "{forwarded:?}");
    let chunked = |(name, value): &(String, String)| {
        !name.eq_ignore_ascii_case("transfer-encoding") || value == "chunked"
    };
    assert!(forwarded.headers.iter().all(chunked), "{forwarded:?}");
    for (name, value) in &forwarded.headers {
        assert!(HeaderName::try_from(name).is_ok(), "{name:?}");
        assert!(!value.contains(['\r', '\n', '\0']), "{name}: {value:?}");
    }
    for named in parts.headers.get_all(CONNECTION) {
        for named in named.as_bytes().split(|byte| *byte == b',') {
            let named = String::from_utf8_lossy(named.trim_ascii());
            // Only fields that an intermediary may not add are certain to be the client's.
            assert!(
                !named.starts_with("x-hop") || count(&named) == 0,
                "{forwarded:?}"
            );
        }
    }
}
