//! Sources of services that are lost and return. What they say when they are back is served.

use std::net::{Ipv4Addr, SocketAddr};

use discovery_serf::Member;
use discovery_serf::testing::AgentInMemory;
use serde_json::{Value, json};
use testkit::consul::{Consul, ConsulAgent};
use testkit::origin::{NamedOrigin, Origin};
use testkit::time::eventually;

use crate::faults::{Requests, get};
use crate::xds::{ControlPlane, from_xds, gateway};

/// Requests while a source is away.
struct Served {
    proxy: SocketAddr,
    admin: SocketAddr,
    requests: Requests,
}

impl Served {
    /// Waits until requests are served by `origin`, and goes on with them.
    async fn start(proxy: SocketAddr, admin: SocketAddr, origin: &NamedOrigin) -> Self {
        by(proxy, origin).await;
        let requests = Requests::start(proxy).await;
        Self {
            proxy,
            admin,
            requests,
        }
    }

    /// Waits until the program has noticed that the source is away, and for requests after that.
    async fn without_source(&self, still: &NamedOrigin) {
        eventually("the source is failing", async || {
            is_failing(self.admin).await
        })
        .await;
        let before = still.served();
        self.requests.go_on("the source is away").await;
        assert!(still.served() > before, "served as before");
    }

    /// Waits until requests are served as the source says that is back.
    async fn with_source_again(self, now: &NamedOrigin) {
        by(self.proxy, now).await;
        self.requests.go_on("the source is back").await;
        self.requests.end().await;
        eventually("the source lives", async || !is_failing(self.admin).await).await;
    }
}

/// Returns true if a source is failing now.
async fn is_failing(admin: SocketAddr) -> bool {
    let answer = get(admin, "/api/v1/providers").await;
    let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
    let providers = answer["providers"].as_array().expect("there are some");
    let mut states = providers.iter().map(|provider| &provider["state"]);
    states.any(|state| state == "failing")
}

async fn by(proxy: SocketAddr, origin: &NamedOrigin) {
    eventually(format!("{} serves", origin.name()), async || {
        get(proxy, "/").await == origin.name()
    })
    .await;
}

fn member(name: &str, origin: &NamedOrigin) -> Member {
    let port = origin.addr().port().to_string();
    let tags = [
        ("service", "web"),
        ("route-path", "/{**rest}"),
        ("http-port", &*port),
    ];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Member::new(name, Ipv4Addr::LOCALHOST.into(), tags.into_iter().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_serf_that_is_lost_and_returns_fails_no_request() {
    let origins = ["before", "after"].map(Origin::named);
    let agent = AgentInMemory::new("gw");
    let address = agent.listen().await.expect("there is a port");
    agent.put(member("w1", &origins[0]));
    let section = format!(
        r#""SerfDiscovery": {{ "Agents": ["{address}"], "ReconcileInterval": "1h", "HealthCheck": {{ "Enabled": false }} }}"#
    );
    let (_process, proxy, admin) = gateway(&section).await;
    let served = Served::start(proxy, admin, &origins[0]).await;
    agent.stop();
    served.without_source(&origins[0]).await;
    // One destination is replaced by the other while the agent is stopped.
    agent.remove("w1");
    agent.put(member("w2", &origins[1]));
    agent.start();
    served.with_source_again(&origins[1]).await;
}

async fn register(agent: &ConsulAgent, id: &str, origin: &NamedOrigin) {
    let instance = json!({
        "Name": "web", "ID": id, "Address": "127.0.0.1", "Port": origin.addr().port(),
        "Tags": ["proxy.enable=true", "proxy.routes.main.path=/{**rest}"],
        "Check": { "CheckID": id, "TTL": "600s", "Status": "passing" },
    });
    let path = "/v1/agent/service/register";
    let answer = agent.call("PUT", path, &instance.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The agent comes back without its earlier state.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_consul_that_is_lost_and_returns_fails_no_request() {
    let Some(consul) = Consul::find() else { return };
    let mut agent = consul.datacenter("sas").start().await;
    let origins = ["before", "after"].map(Origin::named);
    register(&agent, "w1", &origins[0]).await;
    let section = format!(r#""ConsulDiscovery": {{ "Address": "{}" }}"#, agent.url());
    let (_process, proxy, admin) = gateway(&section).await;
    let served = Served::start(proxy, admin, &origins[0]).await;
    agent.kill().await;
    served.without_source(&origins[0]).await;
    agent.restart().await;
    register(&agent, "w2", &origins[1]).await;
    served.with_source_again(&origins[1]).await;
}

fn config(origin: &NamedOrigin) -> String {
    format!(
        r#"{{ "Routes": {{ "r": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{}/" }} }} }} }} }}"#,
        origin.url()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_is_lost_and_returns_fails_no_request() {
    for mode in ["Delta", "StateOfTheWorld"] {
        let origins = ["before", "after"].map(Origin::named);
        let plane = ControlPlane::start(&config(&origins[0])).await;
        let address = plane.address;
        let (_process, proxy, admin) = gateway(&from_xds(&[address], mode)).await;
        let served = Served::start(proxy, admin, &origins[0]).await;
        drop(plane);
        served.without_source(&origins[0]).await;
        let _back = ControlPlane::at(address, &config(&origins[1])).await;
        served.with_source_again(&origins[1]).await;
    }
}
