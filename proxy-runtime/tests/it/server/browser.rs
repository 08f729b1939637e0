//! A real browser with a sticky cookie, whose destination is scaled in.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use serde_json::{Value, json};
use testkit::body;
use testkit::origin::{Incoming, NamedOrigin, Origin};
use testkit::peers;

use crate::server::ways::as_bytes;

/// The time limit: a browser is slow to start on a loaded machine.
const LIMIT: Duration = Duration::from_secs(200);

/// The configuration with all destinations but one.
fn without(gone: Option<&str>, origins: &[NamedOrigin], policy: &str) -> Arc<Snapshot> {
    let left = origins.iter().filter(|origin| Some(origin.name()) != gone);
    let destinations: serde_json::Map<String, Value> = left
        .map(|origin| (origin.name().to_owned(), json!({ "Address": origin.url() })))
        .collect();
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": {
            "LoadBalancingPolicy": "RoundRobin",
            "SessionAffinity": {
                "Enabled": true, "Policy": policy, "AffinityKeyName": "Aff", "Cookie": { "SameSite": "Strict" },
            },
            "Destinations": destinations,
        } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    Arc::new(
        Snapshot::compile(config, &CompileOptions::default())
            .unwrap()
            .0,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_stays_across_a_scale_in() {
    let (Some(chromium), Some(node)) = (peers::find("chromium"), peers::find("node")) else {
        return;
    };
    let Some(modules) = peers::node_module("playwright-core") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("sticky.mjs");
    std::fs::write(&script, include_str!("browser/sticky.mjs")).unwrap();
    // Modules are looked up from where the script lies.
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let policies: &[&str] = match cfg!(feature = "affinity-keys") {
        true => &["HashCookie", "Cookie"],
        false => &["HashCookie"],
    };
    for policy in policies.iter().copied() {
        let origins = Arc::new(["a", "b", "c"].map(Origin::named));
        let first = without(None, &*origins, policy);
        let (proxy, driver) = Proxy::builder().snapshot(first).build().unwrap();
        tokio::spawn(driver);
        let server = as_bytes(&proxy);
        let (controlled, known) = (proxy.clone(), Arc::clone(&origins));
        let control = Origin::start(move |request: Request<Incoming>| {
            let gone = request.uri().path().strip_prefix("/gone/");
            let done = controlled.publish(without(gone, &*known, policy)).is_ok();
            async move {
                let mut response = Response::new(body::empty());
                if !done {
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                }
                response
            }
        });
        let mut browse = node.command();
        browse
            .arg(&script)
            .env("PROXY", format!("http://{}", server.local_addrs()[0]))
            .env("CONTROL", control.url())
            .env("CHROMIUM", chromium.path());
        let done = peers::output_within(LIMIT, browse).await;
        done.expect_success();
        drop(server);
    }
}
