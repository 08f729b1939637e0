//! The program beside a Serf agent.

use std::net::{Ipv4Addr, SocketAddr};

use crate::common::{ConfigFile, address_after, output, start};
use discovery_serf::testing::AgentInMemory;
use discovery_serf::{Member, MemberStatus, Tags};
use serde_json::Value;
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::time::eventually;

/// Starts an agent on its own port.
async fn agent() -> (AgentInMemory, SocketAddr) {
    let agent = AgentInMemory::new("gw");
    let address = agent.listen().await.expect("there is a port");
    (agent, address)
}

/// A member on this machine with these tags, beside its port.
fn member(name: &str, port: u16, tags: &[(&str, &str)]) -> Member {
    let port = ("http-port".to_owned(), port.to_string());
    let tags = tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    Member::new(
        name,
        Ipv4Addr::LOCALHOST.into(),
        tags.chain([port]).collect(),
    )
}

fn config(agent: SocketAddr, more: &str) -> ConfigFile {
    ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "SerfDiscovery": {{ "Agents": ["{agent}"], "ReconcileInterval": "1h" {more} }}
        }}"#
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_services_what_is_wrong_with_tags_and_who_is_no_destination() {
    let (agent, address) = agent().await;
    let host = ("host", "orders.local");
    agent.put(member("o1", 5000, &[("service", "orders"), host]));
    agent.put(member(
        "o2",
        5001,
        &[("service", "orders"), host, ("weight", "many")],
    ));
    agent.put(member("o3", 5002, &[("service", "orders")]).with_status(MemberStatus::Failed));
    let nowhere = Tags::from([("service", "orders")]);
    agent.put(Member::new("o4", Ipv4Addr::LOCALHOST.into(), nowhere));
    let file = config(address, "");
    let arguments = ["discover", "--config", &file.argument(), "--format", "json"];
    let found = output(&arguments).await.expect_success();
    let found: Value = serde_json::from_str(&found.stdout).expect("it is JSON");
    let provider = &found["providers"][1];
    assert_eq!(provider["name"], "serf");
    let proxy = &provider["ReverseProxy"];
    assert_eq!(
        proxy["Routes"]["route:orders"]["Match"]["Hosts"],
        serde_json::json!(["orders.local"])
    );
    let destinations = &proxy["Clusters"]["service:orders"]["Destinations"];
    assert_eq!(
        destinations["127.0.0.1:5000"]["Address"],
        "http://127.0.0.1:5000"
    );
    assert_eq!(destinations.as_object().map(|all| all.len()), Some(2));
    let diagnostics = provider["diagnostics"].to_string();
    assert!(
        diagnostics.contains("o2") && diagnostics.contains("weight"),
        "{diagnostics}"
    );
    assert!(
        diagnostics.contains("o4") && diagnostics.contains("http-port"),
        "{diagnostics}"
    );
    let not_served = provider["not_served"]
        .as_array()
        .expect("not all are served");
    let names: Vec<_> = not_served.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["gw", "o3", "o4"]);

    let text = output(&["discover", "--config", &file.argument()])
        .await
        .expect_success()
        .stdout;
    assert!(text.contains("serf: 1 route, 1 cluster\n"), "{text}");
    let route = "route route:orders: orders.local  every path → service:orders";
    assert!(text.contains(route), "{text}");
    assert!(text.contains("not served o3: "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_follows_the_members_and_outlives_the_agent() {
    let (agent, address) = agent().await;
    let (stable, canary) = (Origin::named("stable"), Origin::named("canary"));
    let web = [("service", "web"), ("route-path", "/{**rest}")];
    let of = |version: &'static str| [web[0], web[1], ("version", version)];
    agent.put(member("w1", stable.addr().port(), &of("stable")));
    let file = config(
        address,
        r#", "VersionHeader": "X-Version", "HealthCheck": { "Enabled": false }"#,
    );
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let get = async |version: Option<&str>| {
        let mut client = Connection::http1(proxy).await.expect("it listens");
        let mut request = client.request("GET", "/");
        if let Some(version) = version {
            request = request.header("X-Version", version);
        }
        let request = request.body(String::new()).expect("it is a request");
        client.send(request).await.expect("it answers").text()
    };
    let told = async |path: &str| {
        let mut client = Connection::http1(admin).await.expect("it listens");
        client.get(path).await.expect("it answers").text()
    };
    assert!(get(None).await.contains("stable"));

    // A canary joins: noticed by event, since the interval is an hour.
    agent.join(member("w2", canary.addr().port(), &of("canary")));
    eventually("the canary can be chosen", async || {
        get(Some("canary")).await.contains("canary")
    })
    .await;
    assert!(get(Some("stable")).await.contains("stable"));
    let all = get(None).await + &get(None).await;
    assert!(all.contains("canary") && all.contains("stable"), "{all}");

    // A bad tag is visible to the operator.
    agent.join(member("w3", 80, &[web[0], ("scheme", "gopher")]));
    eventually("the problem is told", async || {
        let problems = told("/api/v1/problems").await;
        problems.contains("w3") && problems.contains("gopher")
    })
    .await;

    // A stopped agent changes nothing.
    agent.stop();
    eventually("the source is failing", async || {
        told("/api/v1/providers").await.contains("failing")
    })
    .await;
    assert!(get(Some("canary")).await.contains("canary"));
    process.interrupt();
    assert!(process.wait().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_shared_as_the_weights_say() {
    let (agent, address) = agent().await;
    let (stable, canary) = (Origin::named("stable"), Origin::named("canary"));
    let of = |weight: &'static str| [("service", "web"), ("weight", weight)];
    agent.put(member("w1", stable.addr().port(), &of("10")));
    agent.put(member("w2", canary.addr().port(), &of("1")));
    let file = config(address, "");
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let proxy = address_after(&process.output(), "listening on http://");
    let mut client = Connection::http1(proxy).await.expect("it listens");
    for _ in 0..220 {
        assert_eq!(client.get("/").await.expect("it answers").status, 200);
    }
    // Each worker balances over the same cluster, so the shares are exact.
    assert_eq!((stable.served(), canary.served()), (200, 20));
    process.interrupt();
    assert!(process.wait().await.success());
}

#[tokio::test]
async fn an_agent_that_nobody_is_behind_is_named() {
    let file = config(([127, 0, 0, 1], 1).into(), "");
    let found = output(&["discover", "--config", &file.argument()]).await;
    assert_eq!(found.status.code(), Some(1));
    assert!(found.stdout.contains("no answer: "), "{}", found.stdout);
    assert!(found.stdout.contains("127.0.0.1:1"), "{}", found.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_needed_and_never_shown() {
    let (agent, address) = agent().await;
    agent.demand_key(Some("sesame-7f3a".into()));
    let wrong = config(address, r#", "AuthKey": "sesame-0000""#);
    let rejected = output(&["discover", "--config", &wrong.argument()]).await;
    assert_eq!(rejected.status.code(), Some(1));
    let right = config(address, r#", "AuthKey": "sesame-7f3a""#);
    let found = output(&["discover", "--config", &right.argument()])
        .await
        .expect_success();
    for said in [
        &rejected.stdout,
        &rejected.stderr,
        &found.stdout,
        &found.stderr,
    ] {
        assert!(!said.contains("sesame"), "{said}");
    }
}

#[tokio::test]
async fn a_policy_that_nobody_has_is_found_before_services_are() {
    let file = config(
        ([127, 0, 0, 1], 1).into(),
        r#", "LoadBalancingPolicy": "RoundRobbin""#,
    );
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    assert_eq!(checked.status.code(), Some(1));
    let checked: Value = serde_json::from_str(&checked.stdout).expect("it is JSON");
    let problem = &checked["problems"][0];
    assert_eq!(problem["pointer"], "/SerfDiscovery/LoadBalancingPolicy");
    let suggestion = problem["suggestion"].as_str().unwrap_or_default();
    assert!(suggestion.contains("RoundRobin"), "{problem}");
}
