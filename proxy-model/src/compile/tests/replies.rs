//! `Redirect` and `Respond`.

use super::*;
use crate::compiled::RedirectError;
use crate::head::RequestHead;

/// A request for `/old/{rest}` at `h.example:8080`.
struct Asked {
    is_https: bool,
    authority: &'static str,
    path: &'static str,
    query: Option<&'static str>,
}

impl RequestHead for Asked {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        self.query
    }

    fn authority(&self) -> &str {
        self.authority
    }

    fn is_https(&self) -> bool {
        self.is_https
    }

    fn for_each_header(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) {}
}

fn location(redirect: Value, asked: &Asked) -> Result<String, RedirectError> {
    let snapshot = accepted(route(
        json!({ "Redirect": redirect, "Match": { "Path": "/old/{**rest}" } }),
    ));
    let RouteTarget::Redirect(redirect) = snapshot.routes()[0].target() else {
        panic!();
    };
    let path = snapshot.routes()[0].matcher().path();
    let values = path.capture(asked.path).unwrap_or_default();
    redirect.location(asked, &values)
}

#[test]
fn a_redirect_changes_what_it_names_and_keeps_the_rest() {
    let asked = |is_https, authority| Asked {
        is_https,
        authority,
        path: "/old/a%2Fb/c",
        query: None,
    };
    for (redirect, asked, query, expected) in [
        (
            json!({ "Scheme": "HTTPS" }),
            asked(false, "h.example"),
            Some("q=1"),
            "https://h.example/old/a%2Fb/c?q=1",
        ),
        // The port is that of the other scheme.
        (
            json!({ "Scheme": "https" }),
            asked(false, "h.example:8080"),
            None,
            "https://h.example/old/a%2Fb/c",
        ),
        (
            json!({ "Scheme": "https" }),
            asked(false, "[::1]:8080"),
            None,
            "https://[::1]/old/a%2Fb/c",
        ),
        (
            json!({ "Scheme": "https", "Host": "h.example:8443" }),
            asked(false, "h.example:8080"),
            None,
            "https://h.example:8443/old/a%2Fb/c",
        ),
        (
            json!({ "Host": "bücher.example" }),
            asked(true, "h.example"),
            Some(""),
            "https://xn--bcher-kva.example/old/a%2Fb/c?",
        ),
        (
            json!({ "Path": "/new/{**rest}" }),
            asked(false, "h.example:8080"),
            Some("q"),
            "http://h.example:8080/new/a%2Fb/c?q",
        ),
        (json!({ "Path": "/" }), asked(false, "h"), None, "http://h/"),
    ] {
        let asked = Asked { query, ..asked };
        let found = location(redirect.clone(), &asked);
        assert_eq!(found.as_deref(), Ok(expected), "{redirect}");
    }
    let itself = json!({ "Scheme": "https" });
    let found = location(itself, &asked(true, "h.example"));
    assert_eq!(found, Err(RedirectError::ToItself));
    let found = location(json!({ "Path": "/new" }), &asked(true, ""));
    assert_eq!(found, Err(RedirectError::NoHost));
}

#[test]
fn replies_that_make_no_sense_are_rejected() {
    let place = |below: &str| format!("/Routes/r/{below}");
    for (written, code, below) in [
        (json!({ "Redirect": {} }), "missing_key", "Redirect/Scheme"),
        (
            json!({ "Redirect": { "Scheme": "ws" } }),
            "invalid_scheme",
            "Redirect/Scheme",
        ),
        (
            json!({ "Redirect": { "Host": "a b" } }),
            "invalid_host",
            "Redirect/Host",
        ),
        (
            json!({ "Redirect": { "Host": "u@h" } }),
            "invalid_host",
            "Redirect/Host",
        ),
        (
            json!({ "Redirect": { "Host": "*.h" } }),
            "invalid_host",
            "Redirect/Host",
        ),
        (
            json!({ "Redirect": { "Host": "h/x" } }),
            "invalid_host",
            "Redirect/Host",
        ),
        (
            json!({ "Redirect": { "Path": "/{a" } }),
            "invalid_path",
            "Redirect/Path",
        ),
        (
            json!({ "Redirect": { "Path": "/{a}" } }),
            "unknown_route_parameter",
            "Redirect/Path",
        ),
        (
            json!({ "Redirect": { "Scheme": "https", "Status": 200 } }),
            "invalid_status",
            "Redirect/Status",
        ),
        (
            json!({ "Respond": { "Status": 101 } }),
            "invalid_status",
            "Respond/Status",
        ),
        (
            json!({ "Respond": { "Status": 600 } }),
            "invalid_status",
            "Respond/Status",
        ),
        (
            json!({ "Respond": { "Status": 204, "Body": "x" } }),
            "no_effect",
            "Respond/Body",
        ),
        (
            json!({ "Respond": { "Headers": { "a b": "x" } } }),
            "invalid_header",
            "Respond/Headers/a b",
        ),
        (
            json!({ "Respond": { "Headers": { "X": "a\nb" } } }),
            "invalid_header",
            "Respond/Headers/X",
        ),
        (
            json!({ "Respond": { "Headers": { "content-length": "1" } } }),
            "invalid_header",
            "Respond/Headers/content-length",
        ),
        (
            json!({ "Respond": {}, "Redirect": { "Path": "/x" } }),
            "conflicting_clusters",
            "Respond",
        ),
        (
            json!({ "Respond": {}, "ClusterId": "c" }),
            "conflicting_clusters",
            "Respond",
        ),
    ] {
        let mut value = route(written);
        value["Clusters"] = json!({ "c": {} });
        rejected(value, code, &place(below));
    }
    // A filter may be what protects the route.
    let options = options().with_filters(["audit"]);
    let value = route(json!({ "Respond": {}, "Filters": ["audit"] }));
    rejected_with(value, &options, "no_effect", "/Routes/r/Filters");
}

#[test]
fn a_fixed_response_has_a_type_if_it_has_a_body() {
    for (written, status, headers) in [
        (json!({}), 200, &[][..]),
        (
            json!({ "Status": 503, "Body": "x" }),
            503,
            &["text/plain; charset=utf-8"],
        ),
        (
            json!({ "Body": "{}", "Headers": { "Content-Type": "application/json" } }),
            200,
            &["application/json"],
        ),
    ] {
        let snapshot = accepted(route(json!({ "Respond": written })));
        let RouteTarget::Respond(fixed) = snapshot.routes()[0].target() else {
            panic!();
        };
        assert_eq!(fixed.status(), status);
        let values = fixed.headers().iter().map(|(_, value)| value);
        assert_eq!(values.collect::<Vec<_>>(), headers);
    }
}
