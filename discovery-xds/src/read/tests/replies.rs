//! Tests of redirects and direct responses.

use proxy_model::compiled::RouteTarget;
use proxy_model::matching::Lookup;
use xds_types::pb::envoy::config::core::v3::data_source::Specifier;
use xds_types::pb::envoy::config::core::v3::{DataSource, HeaderValue, HeaderValueOption};
use xds_types::pb::envoy::config::route::v3::redirect_action::{
    PathRewriteSpecifier, SchemeRewriteSpecifier,
};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{DirectResponseAction, RedirectAction, Route};

use super::foreign::{host, read, snapshot, to};
use super::{Request, substitution};

fn with(path: PathSpecifier, action: Action) -> Route {
    let mut route = to("r", path);
    route.action = Some(action);
    route
}

fn prefix(prefix: &str) -> PathSpecifier {
    PathSpecifier::Prefix(prefix.into())
}

/// The `Location` of a request for a host and a path, with the status; the pointers of errors if there is none.
fn location(
    path: PathSpecifier,
    action: RedirectAction,
    (asked, target): (&str, &str),
) -> Result<(u16, String), Vec<String>> {
    let route = with(path, Action::Redirect(action));
    let hosts = vec![host(&["*"], vec![route])];
    let (_, problems) = read(hosts.clone()).unwrap();
    let errors: Vec<_> = problems.errors().map(|one| one.pointer.clone()).collect();
    let snapshot = snapshot(hosts);
    let request = Request::get(asked, target);
    let Lookup::Matched(index) = snapshot.find(&request) else {
        panic!("no route takes {target}");
    };
    let route = snapshot.route_at(index);
    match route.target() {
        RouteTarget::Redirect(redirect) => {
            assert!(errors.is_empty(), "{errors:?}");
            let values = route.matcher().path().capture(target).unwrap_or_default();
            let location = redirect.location(&request, &values).unwrap();
            Ok((redirect.status().as_u16(), location))
        }
        RouteTarget::None => Err(errors),
        other => panic!("{other:?}"),
    }
}

#[test]
fn redirects_lead_where_envoy_sends_clients() {
    let https = || Some(SchemeRewriteSpecifier::HttpsRedirect(true));
    let scheme = |text: &str| Some(SchemeRewriteSpecifier::SchemeRedirect(text.into()));
    let whole = |path: &str| Some(PathRewriteSpecifier::PathRedirect(path.into()));
    let part = |path: &str| Some(PathRewriteSpecifier::PrefixRewrite(path.into()));
    let replaced =
        |regex: &str, by: &str| Some(PathRewriteSpecifier::RegexRewrite(substitution(regex, by)));
    let none = RedirectAction::default;
    let separated = || PathSpecifier::PathSeparatedPrefix("/old".into());
    for (matched, action, asked, expected) in [
        (
            prefix("/"),
            RedirectAction {
                scheme_rewrite_specifier: https(),
                ..none()
            },
            ("a.test", "/x%20y"),
            (301, "https://a.test/x%20y"),
        ),
        (
            prefix("/"),
            RedirectAction {
                scheme_rewrite_specifier: scheme("https"),
                response_code: 4,
                ..none()
            },
            ("a.test:80", "/"),
            (308, "https://a.test/"),
        ),
        (
            prefix("/"),
            RedirectAction {
                host_redirect: "b.test".into(),
                response_code: 1,
                ..none()
            },
            ("a.test:81", "/x"),
            (302, "http://b.test/x"),
        ),
        (
            prefix("/"),
            RedirectAction {
                host_redirect: "[::1]".into(),
                port_redirect: 8443,
                response_code: 2,
                ..none()
            },
            ("a.test", "/x"),
            (303, "http://[::1]:8443/x"),
        ),
        (
            prefix("/"),
            RedirectAction {
                path_rewrite_specifier: whole("/new"),
                response_code: 3,
                ..none()
            },
            ("a.test:81", "/x"),
            (307, "http://a.test:81/new"),
        ),
        (
            prefix("/old/"),
            RedirectAction {
                path_rewrite_specifier: part("/new/"),
                ..none()
            },
            ("a.test", "/old/x%2Fy/z"),
            (301, "http://a.test/new/x%2Fy/z"),
        ),
        (
            separated(),
            RedirectAction {
                path_rewrite_specifier: part("/new"),
                ..none()
            },
            ("a.test", "/old/x/y"),
            (301, "http://a.test/new/x/y"),
        ),
        (
            PathSpecifier::PathSeparatedPrefix("/old/v1.2".into()),
            RedirectAction {
                path_rewrite_specifier: replaced(r"(?i)^/old/v1\.2(/.+)?/?$", r"/new\1"),
                ..none()
            },
            ("a.test", "/OLD/v1.2/x/y/"),
            (301, "http://a.test/new/x/y/"),
        ),
        (
            PathSpecifier::Path("/old".into()),
            RedirectAction {
                path_rewrite_specifier: part("/new"),
                ..none()
            },
            ("a.test", "/old"),
            (301, "http://a.test/new"),
        ),
    ] {
        let shown = format!("{action:?} {asked:?}");
        let found = location(matched, action, asked);
        assert_eq!(found, Ok((expected.0, expected.1.to_owned())), "{shown}");
    }
    for (matched, action, field) in [
        (prefix("/"), none(), "host_redirect"),
        (
            prefix("/"),
            RedirectAction {
                strip_query: true,
                host_redirect: "b".into(),
                ..none()
            },
            "strip_query",
        ),
        (
            prefix("/"),
            RedirectAction {
                scheme_rewrite_specifier: scheme("ftp"),
                host_redirect: "b".into(),
                ..none()
            },
            "scheme_redirect",
        ),
        (
            prefix("/"),
            RedirectAction {
                port_redirect: 81,
                scheme_rewrite_specifier: https(),
                ..none()
            },
            "port_redirect",
        ),
        (
            prefix("/"),
            RedirectAction {
                port_redirect: 81,
                host_redirect: "b:80".into(),
                scheme_rewrite_specifier: https(),
                ..none()
            },
            "port_redirect",
        ),
        (
            prefix("/"),
            RedirectAction {
                host_redirect: "a b".into(),
                scheme_rewrite_specifier: https(),
                ..none()
            },
            "host_redirect",
        ),
        (
            prefix("/"),
            RedirectAction {
                response_code: 9,
                host_redirect: "b".into(),
                ..none()
            },
            "response_code",
        ),
        (
            prefix("/"),
            RedirectAction {
                path_rewrite_specifier: whole("/a/"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            prefix("/"),
            RedirectAction {
                path_rewrite_specifier: whole("/a?b"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            // What follows the prefix would be joined to it.
            prefix("/old/"),
            RedirectAction {
                path_rewrite_specifier: part("/new"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            separated(),
            RedirectAction {
                path_rewrite_specifier: part("/new/"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            prefix("/"),
            RedirectAction {
                path_rewrite_specifier: replaced("a", "b"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            // A digit, not the letter.
            PathSpecifier::PathSeparatedPrefix("/d".into()),
            RedirectAction {
                path_rewrite_specifier: replaced(r"(?i)^/\d(/.+)?/?$", r"/new\1"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            separated(),
            RedirectAction {
                path_rewrite_specifier: replaced(r"(?i)^/other(/.+)?/?$", r"/new\1"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
        (
            separated(),
            RedirectAction {
                path_rewrite_specifier: replaced(r"(?i)^/old(/.+)?/?$", r"/\1/new\1"),
                host_redirect: "b".into(),
                ..none()
            },
            "path_rewrite_specifier",
        ),
    ] {
        let shown = format!("{action:?}");
        let target = match &matched {
            PathSpecifier::Prefix(prefix) => prefix.clone(),
            PathSpecifier::PathSeparatedPrefix(prefix) => format!("{prefix}/x"),
            _ => "/old/x".to_owned(),
        };
        let found = location(matched, action, ("a.test", &target));
        let place = format!("/route_configuration/main/*/r/redirect/{field}");
        assert_eq!(found, Err(vec![place]), "{shown}");
    }
}

#[test]
fn direct_responses_have_their_status_and_text() {
    let body = |specifier| {
        Some(DataSource {
            specifier: Some(specifier),
            ..DataSource::default()
        })
    };
    let text = || body(Specifier::InlineString("closed".into()));
    for (status, body, expected) in [
        (503, None, Ok((503, ""))),
        (404, None, Ok((404, ""))),
        (503, text(), Ok((503, "closed"))),
        (
            200,
            body(Specifier::InlineBytes(b"here".to_vec())),
            Ok((200, "here")),
        ),
        (204, text(), Ok((204, ""))),
        (200, body(Specifier::InlineBytes(vec![0xff])), Err("body")),
        (
            200,
            body(Specifier::Filename("/etc/passwd".into())),
            Err("body"),
        ),
        (
            200,
            body(Specifier::EnvironmentVariable("HOME".into())),
            Err("body"),
        ),
        (199, None, Err("status")),
        (600, None, Err("status")),
    ] {
        let answer = DirectResponseAction {
            status,
            body,
            ..DirectResponseAction::default()
        };
        let hosts = vec![host(
            &["*"],
            vec![with(prefix("/"), Action::DirectResponse(answer))],
        )];
        let (_, problems) = read(hosts.clone()).unwrap();
        let errors: Vec<_> = problems.errors().map(|one| one.pointer.clone()).collect();
        let snapshot = snapshot(hosts);
        let found = match snapshot.routes()[0].target() {
            // A route without a cluster answers with 503.
            RouteTarget::None if errors.is_empty() => Ok((503, "")),
            RouteTarget::None => Err(&*errors[0]),
            RouteTarget::Respond(fixed) => {
                let types: Vec<_> = fixed.headers().iter().map(|(_, value)| value).collect();
                let expected = if fixed.body().is_empty() {
                    &[][..]
                } else {
                    &["text/plain"]
                };
                assert_eq!(types, expected);
                Ok((fixed.status().as_u16(), fixed.body()))
            }
            other => panic!("{other:?}"),
        };
        let place = |field| format!("/route_configuration/main/*/r/direct_response/{field}");
        let expected = expected.map_err(place);
        assert_eq!(
            found,
            expected.as_ref().map(|it| *it).map_err(|it| &**it),
            "{status}"
        );
    }
}

#[test]
fn changes_of_requests_that_are_not_sent_on_have_no_effect() {
    let changes = vec![HeaderValueOption {
        header: Some(HeaderValue {
            key: "x-forwarded-for".into(),
            value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%".into(),
            ..HeaderValue::default()
        }),
        ..HeaderValueOption::default()
    }];
    let answer = DirectResponseAction {
        status: 418,
        ..DirectResponseAction::default()
    };
    let redirect = RedirectAction {
        host_redirect: "b".into(),
        ..RedirectAction::default()
    };
    for action in [Action::DirectResponse(answer), Action::Redirect(redirect)] {
        let mut route = with(prefix("/"), action);
        route.request_headers_to_add.clone_from(&changes);
        let mut all = host(&["*"], vec![route]);
        all.request_headers_to_add.clone_from(&changes);
        let (_, problems) = read(vec![all.clone()]).unwrap();
        assert!(!problems.has_errors(), "{problems}");
        let snapshot = snapshot(vec![all]);
        assert!(snapshot.routes()[0].target().is_reply());
    }
    let mut route = to("r", prefix("/"));
    route.request_headers_to_add = changes;
    let (_, problems) = read(vec![host(&["*"], vec![route])]).unwrap();
    assert!(problems.has_errors(), "requests that are sent on");
}
