//! The program beside a real Consul.

use crate::common::{ConfigFile, address_after, output, start};
use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::consul::{Consul, ConsulAgent};
use testkit::origin::Origin;
use testkit::time::eventually;

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
