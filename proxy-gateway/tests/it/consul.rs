//! The program beside a real Consul.

use crate::common::{ConfigFile, address_after, output, start};
use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::consul::{Consul, ConsulAgent};
use testkit::origin::Origin;
use testkit::time::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Registers an instance of a service at this machine, with a check that is in this state.
async fn register(agent: &ConsulAgent, service: &str, id: &str, port: u16, tags: &[&str]) {
    let instance = json!({
        "Name": service, "ID": id, "Address": "127.0.0.1", "Port": port, "Tags": tags,
        "Check": { "CheckID": id, "TTL": "600s", "Status": "passing" },
    });
    let path = "/v1/agent/service/register";
    let answer = agent.call("PUT", path, &instance.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn config(agent: &ConsulAgent, more: &str) -> ConfigFile {
    ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ConsulDiscovery": {{ "Address": "{}" {more} }}
        }}"#,
        agent.url()
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_services_what_is_wrong_with_labels_and_who_did_not_ask() {
    let Some(consul) = Consul::find() else { return };
    let agent = consul.datacenter("sas").start().await;
    let hosts = "proxy.routes.main.hosts=orders.example";
    register(&agent, "orders", "o1", 5000, &["proxy.enable=true", hosts]).await;
    register(&agent, "quiet", "q1", 5001, &[]).await;
    let wrong = "proxy.routes.main.path=/{";
    register(&agent, "wrong", "w1", 5002, &["proxy.enable=true", wrong]).await;
    let file = config(&agent, "");
    let arguments = ["discover", "--config", &file.argument(), "--format", "json"];
    let found = output(&arguments).await.expect_success();
    let found: Value = serde_json::from_str(&found.stdout).expect("it is JSON");
    let provider = &found["providers"][1];
    assert_eq!(provider["name"], "consul");
    let proxy = &provider["ReverseProxy"];
    assert_eq!(
        proxy["Routes"]["orders:main"]["Match"]["Hosts"],
        json!(["orders.example"])
    );
    let destinations = proxy["Clusters"]["orders"]["Destinations"].as_object();
    let addresses: Vec<_> = destinations
        .into_iter()
        .flat_map(|destinations| destinations.values())
        .map(|destination| destination["Address"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(addresses, ["http://127.0.0.1:5000"]);
    let diagnostics = provider["diagnostics"].to_string();
    assert!(diagnostics.contains("wrong"), "{diagnostics}");
    let not_served = provider["not_served"].as_array().expect("some are not");
    let names: Vec<_> = not_served.iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&json!("quiet")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_follows_checks_and_outlives_the_agent() {
    let Some(consul) = Consul::find() else { return };
    let mut agent = consul.datacenter("sas").start().await;
    let (first, second) = (Origin::named("first"), Origin::named("second"));
    let tags = ["proxy.enable=true", "proxy.routes.main.path=/{**rest}"];
    register(&agent, "web", "w1", first.addr().port(), &tags).await;
    let file = config(&agent, "");
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let get = async |address, path: &str| {
        let mut client = Connection::http1(address).await.expect("it listens");
        client.get(path).await.expect("it answers").text()
    };
    eventually("the first serves", async || {
        get(proxy, "/").await.contains("first")
    })
    .await;

    register(&agent, "web", "w2", second.addr().port(), &tags).await;
    let critical = agent.call("PUT", "/v1/agent/check/fail/w1", "").await;
    assert_eq!(critical.status, 200, "{critical:?}");
    // Not by requests: while both serve, a few of them may all reach one.
    let (old, new) = (first.addr().to_string(), second.addr().to_string());
    eventually("only the second serves", async || {
        let serving = get(admin, "/api/v1/config").await;
        serving.contains(&new) && !serving.contains(&old)
    })
    .await;
    assert_eq!(get(proxy, "/").await, "second");

    // A stopped agent changes nothing.
    agent.kill().await;
    eventually("the source is failing", async || {
        get(admin, "/api/v1/providers").await.contains("failing")
    })
    .await;
    assert_eq!(get(proxy, "/").await, "second");
    process.interrupt();
    assert!(process.wait().await.success());
}

/// A service may name the policies that the operator permits to it. With another one it keeps its last good rules, and
/// it cannot open what `Fallback` closes.
#[tokio::test(flavor = "multi_thread")]
async fn services_may_name_the_policies_that_are_permitted() {
    let Some(consul) = Consul::find() else { return };
    let agent = consul.datacenter("sas").start().await;
    let origin = Origin::named("web");
    let port = origin.addr().port();
    let file = config(
        &agent,
        r#" }, "Policies": {
            "RateLimiter": {
                "few": { "Kind": "FixedWindow", "PermitLimit": 1, "Window": "1h" },
                "many": { "Kind": "FixedWindow", "PermitLimit": 1000, "Window": "1h" }
            },
            "Authorization": { "Fallback": { "Networks": { "Deny": ["127.0.0.9/32"] } } },
            "Discovered": { "ConsulDiscovery": { "RateLimiter": ["few"] } }"#,
    );
    let process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let status = async |path: &str| {
        let mut client = Connection::http1(proxy).await.expect("it listens");
        client.get(path).await.expect("it answers").status.as_u16()
    };
    let told = async |path: &str| {
        let mut client = Connection::http1(admin).await.expect("it listens");
        client.get(path).await.expect("it answers").text()
    };
    let tags = |path: &str, policy: &str| {
        [
            "proxy.enable=true".to_owned(),
            format!("proxy.routes.main.path=/{path}"),
            format!("proxy.routes.main.{policy}"),
        ]
    };
    let publish = async |path: &str, policy: &str| {
        let tags = tags(path, policy);
        register(
            &agent,
            "web",
            "w1",
            port,
            &tags.each_ref().map(|tag| &**tag),
        )
        .await;
    };

    publish("limited", "rateLimiterPolicy=few").await;
    eventually("the service is there", async || {
        status("/limited").await != 404
    })
    .await;
    assert_eq!(status("/limited").await, 429, "one request was permitted");

    // The route with a policy that is not permitted does not come, and the one before stays.
    publish("elsewhere", "rateLimiterPolicy=many").await;
    eventually("the problem is told", async || {
        let problems = told("/api/v1/problems").await;
        problems.contains("policy_not_permitted") && problems.contains("RateLimiterPolicy")
    })
    .await;
    assert_eq!(status("/elsewhere").await, 404);
    assert_eq!(status("/limited").await, 429, "the rules before stay");

    // A name that would remove a restriction is ignored: the policy of all routes stays.
    publish("open", "authorizationPolicy=Anonymous").await;
    eventually("the service is there", async || {
        status("/open").await == 200
    })
    .await;
    let config: Value = serde_json::from_str(&told("/api/v1/config").await).expect("it is JSON");
    assert!(!config.to_string().contains("Anonymous"), "{config:#}");
    let socket = tokio::net::TcpSocket::new_v4().expect("there are sockets");
    let from = ([127, 0, 0, 9], 0).into();
    socket.bind(from).expect("all of 127.0.0.0/8 is here");
    let mut stream = socket.connect(proxy).await.expect("it listens");
    let request = b"GET /open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.expect("it listens");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .await
        .expect("it answers");
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
}
