//! CORS policies, judged by a browser: over HTTP/1.1, and over HTTP/2 with TLS.

use std::time::Duration;

use http::{Request, Response};
use serde_json::{Value, json};
use testkit::body;
use testkit::certs::CertificateAuthority;
use testkit::origin::{Incoming, Origin};
use testkit::peers;

use crate::common::{ConfigFile, address_after, start};

/// The time limit: a browser is slow to start on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// The destination: it sets and shows cookies, and has headers to expose.
fn api() -> Origin {
    Origin::start(|request: Request<Incoming>| async move {
        let response = Response::builder()
            .header("x-total", "7")
            .header("x-other", "8");
        let cookie = request.headers().get("cookie");
        let (response, text) = match request.uri().path() {
            "/api/login" => (response.header("set-cookie", "session=1; Path=/"), "api"),
            "/api/cookie" => (
                response,
                cookie
                    .and_then(|cookie| cookie.to_str().ok())
                    .unwrap_or_default(),
            ),
            _ => (response, "api"),
        };
        response
            .body(body::full(text.to_owned()))
            .expect("it is a response")
    })
}

fn config(destination: &Origin, pages: u16, certificate: &Value) -> Value {
    let route = |path: &str, more: Value| {
        let mut route = json!({ "ClusterId": "api", "Match": { "Path": path } });
        for (key, value) in more.as_object().into_iter().flatten() {
            route[key] = value.clone();
        }
        route
    };
    json!({
        "Listeners": {
            "web": { "Address": "127.0.0.1:0" },
            "secure": { "Address": "127.0.0.1:0", "Tls": { "Certificates": [certificate] } }
        },
        "Admin": { "Address": "127.0.0.1:0" },
        "Policies": {
            "Cors": {
                "web": {
                    "Origins": [format!("http://localhost:{pages}"), format!("http://*.localhost:{pages}")],
                    "AllowWildcardSubdomains": true,
                    "Methods": ["GET", "PUT"],
                    "Headers": ["X-Wanted"],
                    "ExposedHeaders": ["X-Total"],
                    "AllowCredentials": true,
                    "PreflightMaxAge": "10m"
                },
                "any": { "AllowAnyOrigin": true }
            },
            "Authorization": { "closed": { "Basic": { "Realm": "staff", "Users": {
                "ann": "$2b$04$qkrbn6vpAWkcZyG9mTSkouxvnWckGj9p9zipKfj.gJxT2RkWITV7q"
            } } } },
            "RateLimiter": { "once": { "Kind": "FixedWindow", "PermitLimit": 1, "Window": "1h" } }
        },
        "ReverseProxy": {
            "Routes": {
                "api": route("/api/{**rest}", json!({ "CorsPolicy": "web" })),
                "closed": route("/closed", json!({ "CorsPolicy": "web", "AuthorizationPolicy": "closed" })),
                "limited": route("/limited", json!({ "CorsPolicy": "web", "RateLimiterPolicy": "once" })),
                "any": route("/any", json!({ "CorsPolicy": "any" })),
                "open": route("/open", json!({}))
            },
            "Clusters": { "api": { "Destinations": { "1": { "Address": destination.url() } } } }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_in_a_browser_read_what_the_policies_allow() {
    let (Some(chromium), Some(node)) = (peers::find("chromium"), peers::find("node")) else {
        return;
    };
    let Some(modules) = peers::node_module("playwright-core") else {
        return;
    };
    let pages = Origin::start(|_: Request<Incoming>| async {
        let page = Response::builder().header("content-type", "text/html");
        page.body(body::full("<title>shop</title>"))
            .expect("it is a response")
    });
    let destination = api();
    let authority = CertificateAuthority::new("servers");
    let files = authority.issue(&["localhost"]).write_pem();
    let certificate = json!({ "CertificateFile": files.certificate(), "KeyFile": files.key() });
    let file =
        ConfigFile::new(&config(&destination, pages.addr().port(), &certificate).to_string());
    let program = start(
        &["run", "--config", &file.argument()],
        "a second Ctrl-C stops at once",
    )
    .await;
    let output = program.output();
    let plain = address_after(&output, "listening on http://").port();
    let secure = address_after(&output, "listening on https://").port();
    let admin = address_after(&output, "admin page on http://");

    let folder = tempfile::tempdir().expect("there is room for a folder");
    let script = folder.path().join("scripts.mjs");
    std::fs::write(&script, include_str!("cors/scripts.mjs")).expect("the folder is ours");
    // Modules are looked up from where the script lies.
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules"))
        .expect("the folder is ours");
    let mut browse = node.command();
    browse
        .arg(&script)
        .env("CHROMIUM", chromium.path())
        .env("PORT", pages.addr().port().to_string())
        .env(
            "GATEWAYS",
            format!("http://localhost:{plain} https://localhost:{secure}"),
        )
        .env("ADMIN", format!("http://{admin}/"));
    peers::output_within(LIMIT, browse).await.expect_success();
}
