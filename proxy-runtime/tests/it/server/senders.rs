//! Claims of clients about themselves and their target that applications might trust.

use std::num::NonZeroUsize;

use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, ListenerRules, Server, ServerHandle};
use serde_json::{Value, json};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::guarded;

use crate::changed;
use crate::server::support::loopback;
use crate::server::ways::{Disguised, OK, proxy};

type Serve = fn(&Proxy, Listener) -> ServerHandle;

fn as_bytes(proxy: &Proxy, listener: Listener) -> ServerHandle {
    let server = Server::for_proxy(proxy).with_workers(NonZeroUsize::MIN);
    server
        .with_listener(listener)
        .bind()
        .unwrap()
        .start()
        .unwrap()
}

fn over_types(proxy: &Proxy, listener: Listener) -> ServerHandle {
    let proxy = proxy.clone();
    let server = Server::builder(move || Disguised(proxy.service()));
    let server = server.with_workers(NonZeroUsize::MIN);
    server
        .with_listener(listener)
        .bind()
        .unwrap()
        .start()
        .unwrap()
}

const WAYS: [Serve; 2] = [as_bytes, over_types];

/// The lines of the head that the destination gets, in lower case and alphabetical order, and the
/// status of the response.
async fn forwarded(
    serve: Serve,
    listener: Listener,
    route: &Value,
    request: &str,
) -> (Vec<String>, u16) {
    let origin = RawOrigin::answering(OK);
    let server = serve(&proxy(&origin, route, ""), listener);
    let answer = RawClient::exchange(server.local_addrs()[0], request);
    let status = guarded(request, answer).await.unwrap().status();
    (received(&origin), status)
}

fn received(origin: &RawOrigin) -> Vec<String> {
    let Some(recording) = origin.recordings().into_iter().next() else {
        return Vec::new();
    };
    let text = recording.text().to_lowercase();
    let mut lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
    lines[1..].sort_unstable();
    lines.into_iter().map(str::to_owned).collect()
}

const CLAIMS: &str = "GET /a HTTP/1.1\r\nHost: h\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Port: 443\r\nAccept: b\r\nX-Forwarded-Ssl: on\r\n\
                      x-forwarded-client-cert: Hash=1\r\nTrue-Client-IP: 6.6.6.6\r\nX-Team: c\r\n\r\n";

fn names(lines: &[String]) -> Vec<&str> {
    let names = lines[1..].iter().filter_map(|line| line.split(':').next());
    names.collect()
}

#[tokio::test]
async fn clients_do_not_say_where_they_are_unless_they_are_trusted() {
    let own = [
        "cdn-loop",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
    ];
    let kept = ["accept", "host", "x-team"];
    let all = [
        "accept",
        "host",
        "true-client-ip",
        "x-forwarded-client-cert",
        "x-forwarded-port",
        "x-forwarded-ssl",
        "x-real-ip",
        "x-team",
    ];
    for serve in WAYS {
        for (trusted, expected) in [(false, &kept[..]), (true, &all)] {
            let rules = changed(|rules: &mut ListenerRules| rules.trusts_senders = trusted);
            let listener = Listener::http(loopback()).with_rules(rules);
            let (lines, status) = forwarded(serve, listener, &json!({}), CLAIMS).await;
            assert_eq!(status, 200);
            let mut names = names(&lines);
            names.retain(|name| !own.contains(name));
            assert_eq!(names, expected, "{trusted}");
        }
    }
}

/// Routes and transforms do not see such fields either, but may set them.
#[tokio::test]
async fn what_is_removed_is_so_before_routes_are_looked_for() {
    let matched = json!({ "Match": { "Path": "/a", "Headers": [{ "Name": "X-Real-IP", "Mode": "Exists" }] } });
    let route = json!({ "Transforms": [{ "RequestHeader": "X-Forwarded-Port", "Append": "80" }] });
    for serve in WAYS {
        let (_, status) = forwarded(serve, Listener::http(loopback()), &matched, CLAIMS).await;
        assert_eq!(status, 404);
        let (lines, _) = forwarded(serve, Listener::http(loopback()), &route, CLAIMS).await;
        let ports = lines
            .iter()
            .filter(|line| line.starts_with("x-forwarded-port"));
        assert_eq!(ports.collect::<Vec<_>>(), ["x-forwarded-port: 80"]);
    }
}

#[tokio::test]
async fn what_a_route_writes_is_not_imitated() {
    let request = "GET /a HTTP/1.1\r\nHost: h\r\nX_Team: red\r\nX-My_Own-Team: red\r\nx-team: red\r\nX_Else: kept\r\n\r\n";
    let route = json!({ "Transforms": [
        { "RequestHeader": "X-Team", "Set": "blue" },
        { "RequestHeader": "X-My-Own-Team", "Append": "blue" },
    ] });
    for serve in WAYS {
        let (lines, _) = forwarded(serve, Listener::http(loopback()), &route, request).await;
        let teams = lines.iter().filter(|line| line.contains("team"));
        assert_eq!(
            teams.collect::<Vec<_>>(),
            ["x-my-own-team: blue", "x-team: blue"]
        );
        assert!(lines.contains(&"x_else: kept".to_owned()), "{lines:?}");
        // A route that writes no such field leaves them unchanged.
        let (lines, _) = forwarded(serve, Listener::http(loopback()), &json!({}), request).await;
        let teams = lines.iter().filter(|line| line.contains("team"));
        assert_eq!(teams.count(), 3, "{lines:?}");
    }
}

#[tokio::test]
async fn a_strict_listener_has_one_reading_of_a_path() {
    let route = json!({ "Match": { "Path": "/admin/{**rest}" } });
    for serve in WAYS {
        for (path, strict, expected) in [
            ("//admin/x", false, 404),
            ("//admin/x", true, 200),
            ("/admin/%2fx", false, 200),
            ("/admin/%2fx", true, 400),
            ("/x/..%2fadmin/x", true, 400),
            ("/admin/x;y", false, 200),
            ("/admin/x;y", true, 400),
            ("/admin/x?y;z//%2f", true, 200),
        ] {
            let rules = changed(|rules: &mut ListenerRules| rules.strict_paths = strict);
            let listener = Listener::http(loopback()).with_rules(rules);
            let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
            let (lines, status) = forwarded(serve, listener, &route, &request).await;
            assert_eq!(status, expected, "{path} {strict}");
            if strict && status == 200 {
                let target = path.replacen("//admin", "/admin", 1);
                assert_eq!(lines[0], format!("get {target} http/1.1"));
            }
        }
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn so_it_is_of_streams() {
    use http::{HeaderName, HeaderValue};

    use crate::server::streams::{Client, get};

    let route = json!({ "Transforms": [{ "RequestHeader": "X-Team", "Set": "blue" }] });
    for serve in WAYS {
        for trusted in [false, true] {
            let origin = RawOrigin::answering(OK);
            let listener =
                Listener::http(loopback()).with_rules(changed(|rules: &mut ListenerRules| {
                    rules.trusts_senders = trusted;
                    rules.strict_paths = true;
                }));
            let server = serve(&proxy(&origin, &route, ""), listener);
            let mut client = Client::connect(server.local_addrs()[0]).await;
            let mut request = get("//a");
            for name in ["x-real-ip", "x-forwarded-port", "x_team", "x_else"] {
                let name = HeaderName::from_static(name);
                request
                    .headers_mut()
                    .insert(name, HeaderValue::from_static("1"));
            }
            let answer = guarded("an answer", client.send(request, None, None)).await;
            assert_eq!(answer.unwrap().status, 200);
            let lines = received(&origin);
            assert_eq!(lines[0], "get /a http/1.1");
            let names = names(&lines);
            for name in ["x-real-ip", "x-forwarded-port"] {
                assert_eq!(names.contains(&name), trusted, "{lines:?}");
            }
            assert!(
                names.contains(&"x_else") && !names.contains(&"x_team"),
                "{lines:?}"
            );
            let rejected = client.send(get("/a;b"), None, None).await.unwrap();
            assert_eq!(rejected.status, 400);
        }
    }
}
