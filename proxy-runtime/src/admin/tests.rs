use std::net::SocketAddr;
use std::sync::Arc;

use discovery_core::{Merge, StaticProvider};
use http::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use http::{Request, Response, StatusCode};
use proxy_model::config::ProxyConfig;
use serde_json::Value;

use super::*;
use crate::server::{Listener, ListenerRules, Server};

mod access;
mod lists;
mod sources;
mod verdict;

const CONFIG: &str = r#"{
    "Routes": {
        "orders": { "ClusterId": "orders", "Match": { "Path": "/orders/{id}", "Methods": ["GET"] } },
        "lost": { "ClusterId": "missing", "Match": { "Path": "/lost" } },
        "tenants": {
            "Match": { "Path": "/tenants" },
            "PartitionedClusters": {
                "Key": { "Header": "X-Tenant" },
                "Hash": "Fnv1a64",
                "Partitions": [
                    { "ClusterId": "orders", "LowKey": 50, "HighKey": 99 },
                    { "ClusterId": "empty/one", "LowKey": 0, "HighKey": 24 },
                    { "ClusterId": "ORDERS", "LowKey": 25, "HighKey": 49 }
                ]
            }
        },
        "sealed": {
            "ClusterId": "orders",
            "Match": { "Path": "/sealed", "Headers": [ { "Name": "X-Team-Token", "Values": ["hush1"] } ] },
            "Transforms": [
                { "RequestHeader": "Authorization", "Set": "Basic hush2" },
                { "QueryValueParameter": "sig", "Set": "hush3" }
            ]
        },
        "shelves": {
            "Match": { "Path": "/shelves" },
            "PartitionedClusters": {
                "Key": { "QueryParameter": "shelf" },
                "Partitions": [ { "ClusterId": "orders", "Name": "a" }, { "ClusterId": "missing", "Name": "b" } ]
            }
        }
    },
    "Clusters": {
        "orders": {
            "Destinations": {
                "d1": { "Address": "http://127.0.0.1:1/" },
                "d2": { "Address": "http://127.0.0.1:2/", "Weight": 0 }
            },
            "Metadata": { "Api-Token": "hush" }
        },
        "empty/one": {}
    }
}"#;

async fn admin() -> Admin {
    admin_of(CONFIG).await
}

async fn admin_of(config: &str) -> Admin {
    let config = ProxyConfig::from_json(config).unwrap();
    let merged = Merge::new()
        .provider(StaticProvider::new("fixed", config))
        .start();
    merged.ready().await;
    let (proxy, driver) = Proxy::builder()
        .snapshots(merged.snapshots())
        .build()
        .unwrap();
    drop(driver);
    Admin::builder(proxy).merged(Arc::new(merged)).build()
}

fn ask(admin: &Admin, path: &str) -> Response<bytes::Bytes> {
    let request = Request::get(path)
        .header(HOST, "127.0.0.1:9901")
        .body(())
        .unwrap();
    admin.respond(&request)
}

fn json(admin: &Admin, path: &str) -> Value {
    let response = ask(admin, path);
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn every_path_that_the_docs_list_answers() {
    let admin = admin().await;
    for path in ["/", "/healthz", "/readyz", "/metrics"] {
        assert_eq!(ask(&admin, path).status(), 200, "{path}");
    }
    for path in [
        "overview",
        "routes",
        "clusters",
        "clusters/orders",
        "providers",
        "config",
        "problems",
        "changes",
        "requests",
    ] {
        json(&admin, &format!("/api/v1/{path}"));
    }
}

#[tokio::test]
async fn every_asset_that_the_page_names_is_there() {
    let admin = admin().await;
    let page = ask(&admin, "/");
    assert_eq!(
        page.headers()["cross-origin-resource-policy"],
        "same-origin"
    );
    let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"));
    let mut texts = vec![String::from_utf8(page.body().to_vec()).unwrap()];
    let mut seen = 0;
    while let Some(text) = texts.pop() {
        for asset in assets_in(&text) {
            let response = ask(&admin, &asset);
            assert_eq!(response.status(), 200, "{asset}");
            seen += 1;
            assert!(seen < 100, "assets name each other for ever");
            if asset == "/assets/app.js" {
                texts.push(String::from_utf8(response.body().to_vec()).unwrap());
            }
        }
        for elsewhere in [
            "src=\"http",
            "href=\"http",
            "url(http",
            "@import",
            "from 'http",
        ] {
            assert!(!text.contains(elsewhere), "{elsewhere}");
        }
    }
    assert!(seen >= 8);
}

/// Returns the paths of all quoted assets in a page or script; `./x.js` is a module beside the script.
fn assets_in(text: &str) -> Vec<String> {
    let quoted = text.split(['"', '\'']);
    quoted
        .filter_map(|part| match part.strip_prefix("./") {
            Some(module) if module.ends_with(".js") => Some(format!("/assets/{module}")),
            _ => part.starts_with("/assets/").then(|| part.to_owned()),
        })
        .collect()
}

#[tokio::test]
async fn clusters_are_filtered_and_counted() {
    let admin = admin().await;
    let all = json(&admin, "/api/v1/clusters");
    assert_eq!(all["matching"], 2);
    let empty = json(&admin, "/api/v1/clusters?state=empty");
    assert_eq!(empty["clusters"][0]["id"], "empty/one");
    let filtered = json(&admin, "/api/v1/clusters?filter=ORD&limit=1");
    assert_eq!(filtered["clusters"].as_array().unwrap().len(), 1);
    let limited = json(&admin, "/api/v1/clusters?limit=1");
    assert_eq!(limited["matching"], 2);
    assert_eq!(limited["clusters"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn partitions_of_a_route_are_shown() {
    let admin = admin().await;
    let listed = json(&admin, "/api/v1/routes");
    let route = |id: &str| {
        let mut routes = listed["routes"].as_array().unwrap().iter();
        routes.find(|route| route["id"] == id).unwrap().clone()
    };
    let share = |cluster: &str, exists: bool, share: Option<f64>, keys: Option<&str>| serde_json::json!({ "cluster": cluster, "exists": exists, "share": share, "keys": keys });
    let tenants = route("tenants");
    assert_eq!(tenants["partition_key"], "the header x-tenant");
    assert_eq!(
        tenants["clusters"],
        serde_json::json!([
            share("empty/one", true, Some(0.25), Some("0 to 24")),
            share("ORDERS", true, Some(0.25), Some("25 to 49")),
            share("orders", true, Some(0.5), Some("50 to 99")),
        ])
    );
    let shelves = route("shelves");
    assert_eq!(shelves["partition_key"], "the query parameter shelf");
    assert_eq!(
        shelves["clusters"],
        serde_json::json!([
            share("orders", true, None, Some("a")),
            share("missing", false, None, Some("b")),
        ])
    );
    let orders = route("orders");
    assert_eq!(orders["partition_key"], Value::Null);
    assert_eq!(
        orders["clusters"],
        serde_json::json!([share("orders", true, Some(1.0), None)])
    );
    let overview = json(&admin, "/api/v1/overview");
    let mut drawn = overview["flow"]["routes"].as_array().unwrap().iter();
    let drawn = drawn.find(|route| route["id"] == "tenants").unwrap();
    let clusters = drawn["clusters"].as_array().unwrap();
    let drawn: Vec<_> = clusters.iter().map(|cluster| &cluster["id"]).collect();
    assert_eq!(drawn, ["empty/one", "ORDERS"], "one line to each cluster");
}

#[tokio::test]
async fn a_cluster_is_found_by_its_encoded_id() {
    let admin = admin().await;
    assert_eq!(
        json(&admin, "/api/v1/clusters/empty%2Fone")["state"],
        "empty"
    );
    let orders = json(&admin, "/api/v1/clusters/ORDERS");
    assert_eq!(orders["provider"], "fixed");
    assert_eq!(orders["routes"][0], "orders");
    assert_eq!(orders["destinations"][0]["eligible"], true);
    assert_eq!(orders["destinations"][1]["eligible"], false);
    assert_eq!(ask(&admin, "/api/v1/clusters/none").status(), 404);
}

#[tokio::test]
async fn problems_of_the_sources_are_shown_with_their_source() {
    let admin = admin().await;
    let problems = json(&admin, "/api/v1/problems");
    let problem = &problems["problems"][0];
    assert_eq!(problem["provider"], "fixed");
    assert_eq!(problem["code"], "unknown_cluster");
    let providers = json(&admin, "/api/v1/providers");
    assert_eq!(providers["providers"][0]["state"], "live");
}

#[tokio::test]
async fn secrets_do_not_show() {
    let admin = admin().await;
    // What the response_context says is shown to the response_context.
    let explain = "explain?url=http://a.example/sealed?token=mine&header=X-Team-Token:%20hush1";
    let explained = json(&admin, &format!("/api/v1/{explain}"));
    assert_eq!(explained["outcome"], "matched", "{explained}");
    assert!(explained.to_string().contains("hush1"), "{explained}");
    for (path, hidden) in [
        ("config", "hush"),
        ("routes", "hush"),
        ("changes", "hush"),
        (explain, "hush2"),
        (explain, "hush3"),
    ] {
        let text = json(&admin, &format!("/api/v1/{path}")).to_string();
        assert!(!text.contains(hidden), "{path}: {text}");
        assert!(
            path == "changes" || text.contains("(redacted)"),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn keys_of_partitions_that_may_be_secrets_do_not_show() {
    let admin = admin_of(
        r#"{
            "Routes": { "r": {
                "Match": { "Path": "/{**rest}" },
                "PartitionedClusters": {
                    "Key": { "Header": "X-Api-Key" },
                    "Partitions": [ { "ClusterId": "c", "Name": "hush" } ]
                }
            } },
            "Clusters": { "c": { "Destinations": { "d": { "Address": "http://127.0.0.1:1/" } } } }
        }"#,
    )
    .await;
    for path in ["config", "routes"] {
        let text = json(&admin, &format!("/api/v1/{path}")).to_string();
        assert!(!text.contains("hush"), "{path}: {text}");
        assert!(text.contains("(redacted)"), "{path}: {text}");
    }
}

#[tokio::test]
async fn decisions_are_explained() {
    let admin = admin().await;
    let matched = json(
        &admin,
        "/api/v1/explain?url=http%3A%2F%2Fa.example%2Forders%2F17",
    );
    assert_eq!(matched["outcome"], "matched");
    assert_eq!(matched["route_values"]["id"], "17");
    let rejected = json(
        &admin,
        "/api/v1/explain?method=PUT&url=http://a.example/orders/17",
    );
    assert_eq!(rejected["outcome"], "method_not_allowed");
    assert_eq!(rejected["allow"][0], "GET");
    let bad = ask(&admin, "/api/v1/explain?url=nonsense");
    assert_eq!(bad.status(), 400);
}

#[tokio::test]
async fn it_can_only_be_read() {
    let admin = admin().await;
    let post = Request::post("/api/v1/config").header(HOST, "localhost");
    let post = post.body(()).unwrap();
    let response = admin.respond(&post);
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()[ALLOW], "GET, HEAD");
    let head = Request::head("/healthz").body(()).unwrap();
    let response = admin.respond(&head);
    assert_eq!(response.status(), 200);
    assert!(response.body().is_empty());
}

#[tokio::test]
async fn pages_elsewhere_cannot_read_it_by_rebinding_a_name() {
    let admin = admin().await;
    let named = |host: &str| {
        let request = Request::get("/healthz")
            .header(HOST, host)
            .body(())
            .unwrap();
        admin.respond(&request).status()
    };
    for allowed in [
        "127.0.0.1:9901",
        "[::1]:9901",
        "localhost",
        "admin.localhost:80",
        "10.0.0.7",
    ] {
        assert_eq!(named(allowed), 200, "{allowed}");
    }
    for rejected in [
        "",
        "a b",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
    ] {
        assert_eq!(
            named(rejected),
            StatusCode::MISDIRECTED_REQUEST,
            "{rejected}"
        );
    }
    // Either of the two may be the one of a page.
    let two = Request::get("/api/v1/config").header(HOST, "localhost");
    let two = two.header(HOST, "evil.example").body(()).unwrap();
    assert_eq!(admin.respond(&two).status(), 400);
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/api/v1/config", 400),
        ("/", 400),
    ] {
        let without = Request::get(path).body(()).unwrap();
        assert_eq!(admin.respond(&without).status(), status, "{path}");
    }
}

#[tokio::test]
async fn readiness_follows_the_sources_and_the_drain() {
    let merged = Merge::new()
        .provider(StaticProvider::waiting("late"))
        .start();
    let mut states = merged.subscribe();
    states
        .wait_for(|state| !state.waiting_for.is_empty())
        .await
        .unwrap();
    let (proxy, _driver) = Proxy::builder()
        .snapshots(merged.snapshots())
        .build()
        .unwrap();
    let unready = Admin::builder(proxy).merged(Arc::new(merged)).build();
    let response = ask(&unready, "/readyz");
    assert_eq!(response.status(), 503);
    assert!(
        std::str::from_utf8(response.body())
            .unwrap()
            .contains("late")
    );
    assert_eq!(json(&unready, "/api/v1/overview")["state"], "starting");

    let ready = admin().await;
    assert_eq!(ask(&ready, "/readyz").status(), 200);
    assert_eq!(json(&ready, "/api/v1/overview")["ready"], true);
    ready.set_draining();
    assert_eq!(ask(&ready, "/readyz").status(), 503);
    assert_eq!(ask(&ready, "/healthz").status(), 200);
}

#[tokio::test]
async fn explain_is_told_the_listener_where_that_makes_a_difference() {
    let (proxy, driver) = Proxy::builder()
        .snapshot(crate::fixtures::snapshot(CONFIG))
        .build()
        .unwrap();
    drop(driver);
    let of = |strict: [bool; 2]| {
        let rules = strict.map(|strict_paths| ListenerRules {
            strict_paths,
            ..ListenerRules::default()
        });
        let listeners = ["web", "inner"].into_iter().zip(rules);
        let server = listeners.fold(Server::for_proxy(&proxy), |server, (name, rules)| {
            let listener = Listener::http(SocketAddr::from(([127, 0, 0, 1], 0)));
            server.with_listener(listener.with_name(name).with_rules(rules))
        });
        let server = server.bind().unwrap();
        Admin::builder(proxy.clone()).server(&server).build()
    };
    let path = |more: &str| format!("/api/v1/explain?url=http://a.example/a%253Bb{more}");
    let outcome = |admin: &Admin, more: &str| json(admin, &path(more))["outcome"].clone();
    assert_ne!(outcome(&admin().await, ""), "rejected");
    assert_ne!(outcome(&of([false, false]), ""), "rejected");
    assert_eq!(outcome(&of([true, true]), ""), "rejected");
    let mixed = of([true, false]);
    assert_eq!(outcome(&mixed, "&listener=web"), "rejected");
    assert_ne!(outcome(&mixed, "&listener=inner"), "rejected");
    for more in ["", "&listener=other"] {
        let response = ask(&mixed, &path(more));
        assert_eq!(response.status(), 400);
        assert!(String::from_utf8_lossy(response.body()).contains("`web`, `inner`"));
    }
    let listeners = |admin: &Admin| json(admin, "/api/v1/overview")["listeners"].clone();
    assert_eq!(listeners(&mixed), serde_json::json!(["web", "inner"]));
    assert_eq!(listeners(&of([true, true])), serde_json::json!([]));
}

/// The merge has the configuration first, and its clients may ask at that moment.
#[tokio::test]
async fn ready_is_what_serves_and_stays_so() {
    let late = StaticProvider::waiting("late");
    let merged = Merge::new().provider(late.clone()).start();
    let (proxy, driver) = Proxy::builder()
        .snapshots(merged.snapshots())
        .build()
        .unwrap();
    let merged = Arc::new(merged);
    let admin = Admin::builder(proxy.clone())
        .merged(Arc::clone(&merged))
        .build();
    late.update(ProxyConfig::from_json(CONFIG).unwrap());
    merged.ready().await;
    let response = ask(&admin, "/readyz");
    assert_eq!(response.status(), 503, "nothing of it serves");
    assert!(!String::from_utf8_lossy(response.body()).contains("late"));
    let overview = json(&admin, "/api/v1/overview");
    assert_eq!(
        (&overview["state"], &overview["ready"]),
        (&"starting".into(), &false.into())
    );

    let driver = tokio::spawn(driver);
    let mut generations = proxy.generations();
    while proxy.routes().is_empty() {
        generations.changed().await.unwrap();
    }
    assert_eq!(ask(&admin, "/readyz").status(), 200);

    // What comes later serves a moment later, and until then there is what was there before.
    driver.abort();
    let mut states = merged.subscribe();
    late.update(ProxyConfig::from_json("{}").unwrap());
    let is_empty = |state: &Arc<discovery_core::MergedState>| state.snapshot.routes().is_empty();
    states.wait_for(is_empty).await.unwrap();
    assert_eq!(ask(&admin, "/readyz").status(), 200);
    assert_eq!(json(&admin, "/api/v1/overview")["ready"], true);
}

#[tokio::test]
async fn metrics_end_as_openmetrics_wants() {
    let admin = admin().await;
    let response = ask(&admin, "/metrics");
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    assert!(text.contains("proxy_config_generation"));
    assert!(text.contains("discovery_source_up{source=\"fixed\"} 1\n"));
    let problems = "proxy_config_problems{source=\"fixed\",severity=\"warning\"} 2\n";
    assert!(
        text.contains(problems),
        "one for each cluster that is missing"
    );
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(text.matches("# EOF").count(), 1);
}
