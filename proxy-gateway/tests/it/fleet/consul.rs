//! Registrations in Consul.

use serde_json::json;
use testkit::consul::ConsulAgent;
use testkit::origin::{NamedOrigin, Origin};

/// An instance of a service, which responds with its name.
pub(crate) struct Instance {
    pub(crate) origin: NamedOrigin,
    id: String,
}

/// Starts an instance and registers it.
pub(crate) async fn register(
    agent: &ConsulAgent,
    service: &str,
    name: &str,
    tags: &[&str],
) -> Instance {
    let origin = Origin::named(name);
    let id = format!("{service}-{name}");
    let address = origin.addr();
    let body = json!({
        "Name": service, "ID": id, "Address": address.ip().to_string(), "Port": address.port(), "Tags": tags,
        "Check": { "TTL": "600s", "Status": "passing" },
    });
    let path = "/v1/agent/service/register";
    let answer = agent.call("PUT", path, &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    Instance { origin, id }
}

/// Deregisters an instance, which still responds.
pub(crate) async fn deregister(agent: &ConsulAgent, instance: &Instance) {
    let path = format!("/v1/agent/service/deregister/{}", instance.id);
    assert_eq!(agent.call("PUT", &path, "").await.status, 200);
}
