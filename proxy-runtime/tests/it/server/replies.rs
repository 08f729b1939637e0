//! Routes that answer their requests themselves, over both versions of HTTP.

use std::num::NonZeroUsize;

use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{Listener, Server, ServerHandle};
use testkit::raw::RawClient;
use testkit::time::guarded;

use crate::server::support::loopback;
use crate::server::ways::Disguised;

const ROUTES: &str = r#"{ "Routes": {
    "secure": { "Match": { "Hosts": ["*:80"] }, "Redirect": { "Scheme": "https", "Status": 308 } },
    "moved": { "Match": { "Path": "/old/{**rest}" }, "Redirect": { "Path": "/new/{**rest}" },
        "Transforms": [{ "ResponseHeader": "X-Seen", "Set": "yes", "When": "Always" }] },
    "itself": { "Match": { "Path": "/itself" }, "Redirect": { "Path": "/itself" } },
    "strict": { "Match": { "Path": "/strict/{**rest}" }, "StrictPaths": true, "Respond": {} },
    "closed": { "Match": { "Path": "/closed" }, "AuthorizationPolicy": "staff", "Respond": { "Body": "secret" } },
    "away": { "Match": { "Path": "/away" }, "Respond": { "Status": 503, "Body": "Back soon.",
        "Headers": { "Retry-After": "60", "Content-Type": "text/html" } } }
} }"#;

fn serve(is_typed: bool) -> ServerHandle {
    let options = CompileOptions::default().with_authorization_policies(["staff"]);
    let config = ProxyConfig::from_json(ROUTES).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
    let (proxy, _driver) = Proxy::builder().snapshot(snapshot.into()).build().unwrap();
    let server = match is_typed {
        false => Server::for_proxy(&proxy),
        true => Server::builder(move || Disguised(proxy.service())),
    };
    let server = server.with_workers(NonZeroUsize::MIN);
    server
        .with_listener(Listener::http(loopback()))
        .bind()
        .unwrap()
        .start()
        .unwrap()
}

#[tokio::test]
async fn a_route_answers_without_a_destination() {
    for is_typed in [false, true] {
        let server = serve(is_typed);
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        for (method, host, path, status, header, body) in [
            (
                "GET",
                "h.example",
                "/a?b=c",
                308,
                "location: https://h.example/a?b=c",
                Some("308 Permanent Redirect\n"),
            ),
            (
                "POST",
                "h.example:80",
                "/",
                308,
                "location: https://h.example/",
                Some("308 Permanent Redirect\n"),
            ),
            (
                "GET",
                "h.example:81",
                "/old/x%20y?q",
                307,
                "location: http://h.example:81/new/x%20y?q",
                Some("307 Temporary Redirect\n"),
            ),
            (
                "GET",
                "h.example:81",
                "/old/x",
                307,
                "x-seen: yes",
                Some("307 Temporary Redirect\n"),
            ),
            (
                "HEAD",
                "h.example:81",
                "/away",
                503,
                "retry-after: 60",
                None,
            ),
            (
                "GET",
                "h.example:81",
                "/away",
                503,
                "content-type: text/html",
                Some("Back soon."),
            ),
            (
                "GET",
                "h.example:81",
                "/itself",
                508,
                "content-length: 18",
                Some("508 Loop Detected\n"),
            ),
            (
                "GET",
                "h.example:81",
                "/strict/a",
                200,
                "content-length: 0",
                Some(""),
            ),
            (
                "GET",
                "h.example:81",
                "/strict/a;b",
                400,
                "content-length: 16",
                Some("400 Bad Request\n"),
            ),
            // A protection that nothing honours keeps the response closed.
            (
                "GET",
                "h.example:81",
                "/closed",
                500,
                "content-length: 26",
                Some("500 Internal Server Error\n"),
            ),
        ] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.write_all(&request).await.unwrap();
            let answer = guarded(path, client.read_response_to(method))
                .await
                .unwrap();
            let head = String::from_utf8_lossy(&answer.head.bytes).to_lowercase();
            assert_eq!(answer.status(), status, "{path} {head}");
            assert!(
                head.contains(&format!("\r\n{header}\r\n")),
                "{header} in {head}"
            );
            assert_eq!(answer.text(), body.unwrap_or_default(), "{path}");
        }
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn so_it_does_over_streams() {
    use crate::server::streams::{Client, get};

    for is_typed in [false, true] {
        let server = serve(is_typed);
        let mut client = Client::connect(server.local_addrs()[0]).await;
        for (path, status) in [("/away", 503), ("/itself", 508), ("/closed", 500)] {
            let answer = guarded(path, client.send(get(path), None, None)).await;
            assert_eq!(answer.unwrap().status, status, "{path}");
        }
    }
}
