//! The writing calls of the agent.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::request::SeenRequest;
use super::{FakeConsul, Reply};
use crate::client::{CheckDefinition, HealthStatus, ServiceDefinition, ServiceWeights};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WrittenRegistration {
    #[serde(rename = "ID", default)]
    id: String,
    name: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    port: u16,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    meta: BTreeMap<String, String>,
    weights: Option<ServiceWeights>,
    check: Option<RegisteredCheck>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RegisteredCheck {
    #[serde(rename = "CheckID")]
    id: String,
    status: HealthStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Updated {
    status: HealthStatus,
}

impl FakeConsul {
    /// Executes a writing call.
    pub(super) fn write(&self, request: &SeenRequest, body: &Bytes) -> Reply {
        let own = &self.shared.own;
        let node = format!("{own}-1");
        let done = || Reply::plain(&json!(null));
        let path: Vec<_> = request.path.splitn(4, '/').collect();
        match (request.method.as_str(), &path[..]) {
            ("PUT", ["agent", "service", "register"]) => {
                let Ok(registered) = serde_json::from_slice::<WrittenRegistration>(body) else {
                    return Reply::error(400, "Request decode failed");
                };
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                if !registered.meta.keys().all(|key| key.bytes().all(plain)) {
                    return Reply::error(
                        400,
                        "Invalid Service Meta: Key contains invalid characters",
                    );
                }
                self.register(own, &node, registered.into());
                done()
            }
            ("PUT", ["agent", "service", "deregister", id]) => {
                self.deregister(own, &node, id);
                done()
            }
            ("PUT", ["agent", "check", "update", id]) => {
                let Ok(updated) = serde_json::from_slice::<Updated>(body) else {
                    return Reply::error(400, "Request decode failed");
                };
                match self.in_datacenter(own, |store| store.set_check(id, updated.status)) {
                    true => done(),
                    false => Reply::error(500, "does not have associated TTL"),
                }
            }
            (method @ ("PUT" | "DELETE"), ["kv", ..]) => {
                let key = request.path.strip_prefix("kv/").unwrap_or_default();
                self.in_datacenter(own, |store| match method {
                    "PUT" => store.put(key, body),
                    _ => store.delete(key),
                });
                Reply::plain(&json!(true))
            }
            _ => Reply::error(405, "method not allowed"),
        }
    }
}

impl From<WrittenRegistration> for ServiceDefinition {
    fn from(registered: WrittenRegistration) -> Self {
        Self {
            name: registered.name,
            id: registered.id,
            address: registered.address,
            port: registered.port,
            tags: registered.tags,
            meta: registered.meta,
            weights: registered.weights,
            tagged_addresses: BTreeMap::new(),
            check: registered.check.map(|check| {
                // There is no countdown here: a test sets a check to critical.
                CheckDefinition::ttl(check.id, Duration::MAX).with_status(check.status)
            }),
        }
    }
}
