//! The agent's own endpoints, and registrations at it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::model::{HealthStatus, ServiceWeights, TaggedAddress};
use super::query::Answer;
use super::{ConsulClient, ConsulError};

/// The agent's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentSelf {
    /// The agent's datacenter.
    pub datacenter: String,
    /// The name of the agent's node.
    pub node: String,
    /// The agent's version.
    pub version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SelfAnswer {
    config: SelfConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SelfConfig {
    datacenter: String,
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    version: String,
}

/// An instance of a service in the form in which it is registered at an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceDefinition {
    /// The service's name.
    pub name: String,
    /// The id, unique on the agent's node. Empty for the name.
    pub id: String,
    /// Address of the instance. Empty for the address of the node.
    pub address: String,
    /// The instance's port. 0 if it has none.
    pub port: u16,
    /// Free text.
    pub tags: Vec<String>,
    /// Free text by key.
    pub meta: BTreeMap<String, String>,
    /// The instance's share of the requests. Default: 1.
    pub weights: Option<ServiceWeights>,
    /// Addresses for clients in other networks.
    pub tagged_addresses: BTreeMap<String, TaggedAddress>,
    /// The check that decides about its health. `None` if the instance always counts as healthy.
    pub check: Option<CheckDefinition>,
}

/// A check that must be renewed in time (TTL).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckDefinition {
    /// Unique on the node.
    pub id: String,
    /// The time to live of a status, after which the check is critical.
    pub ttl: Duration,
    /// The initial status.
    pub status: HealthStatus,
    /// The time for which the check may be critical before the instance is removed from the catalog.
    /// Servers check about once a minute, and use at least a minute. `None` to keep the instance.
    pub deregister_after: Option<Duration>,
}

impl CheckDefinition {
    /// Creates a check that passes at first, and becomes critical unless it is renewed.
    pub fn ttl(id: impl Into<String>, ttl: Duration) -> Self {
        Self {
            id: id.into(),
            ttl,
            status: HealthStatus::Passing,
            deregister_after: None,
        }
    }

    /// Removes the instance from the catalog when the check was critical for this time.
    #[must_use]
    pub fn deregister_after(mut self, critical: Duration) -> Self {
        self.deregister_after = Some(critical);
        self
    }

    /// Sets the initial status of the check.
    #[must_use]
    pub fn with_status(mut self, status: HealthStatus) -> Self {
        self.status = status;
        self
    }
}

impl ServiceDefinition {
    /// Creates an instance of a service at a port of its node, without a check.
    pub fn new(name: impl Into<String>, port: u16) -> Self {
        Self {
            name: name.into(),
            port,
            ..Self::default()
        }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the address.
    #[must_use]
    pub fn with_address(mut self, address: impl Into<String>) -> Self {
        self.address = address.into();
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Adds metadata.
    #[must_use]
    pub fn with_meta(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Sets the share of the requests while all checks pass, and while one warns.
    #[must_use]
    pub fn with_weights(mut self, passing: u32, warning: u32) -> Self {
        self.weights = Some(ServiceWeights { passing, warning });
        self
    }

    /// Sets the check.
    #[must_use]
    pub fn with_check(mut self, check: CheckDefinition) -> Self {
        self.check = Some(check);
        self
    }

    /// Returns the id that the instance will have.
    pub fn effective_id(&self) -> &str {
        match self.id.is_empty() {
            true => &self.name,
            false => &self.id,
        }
    }
}

/// The form that the agent reads.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct RegisterBody<'d> {
    #[serde(rename = "ID", skip_serializing_if = "str::is_empty")]
    id: &'d str,
    name: &'d str,
    #[serde(skip_serializing_if = "str::is_empty")]
    address: &'d str,
    port: u16,
    tags: &'d [String],
    meta: &'d BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<WeightsBody>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tagged_addresses: BTreeMap<&'d str, AddressBody<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckBody<'d>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WeightsBody {
    passing: u32,
    warning: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct AddressBody<'d> {
    address: &'d str,
    port: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CheckBody<'d> {
    #[serde(rename = "CheckID")]
    id: &'d str,
    #[serde(rename = "TTL")]
    ttl: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    deregister_critical_service_after: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct UpdateBody<'n> {
    status: &'static str,
    output: &'n str,
}

fn in_go(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// The status in a word that a check may have.
fn check_status(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Maintenance => HealthStatus::Critical.as_str(),
        status => status.as_str(),
    }
}

impl ConsulClient {
    /// Returns the agent's description of itself: `/v1/agent/self`, for which a token needs `agent_prefix
    /// "" { policy = "read" }`.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn agent_self(&self) -> Result<AgentSelf, ConsulError> {
        let answer: Answer<SelfAnswer> = self.json(Call::get(["agent", "self"])).await?;
        let config = answer.value.config;
        Ok(AgentSelf {
            datacenter: config.datacenter,
            node: config.node_name,
            version: config.version,
        })
    }

    /// Registers an instance at the agent, or replaces it: `/v1/agent/service/register`. The agent removes
    /// checks of the earlier form that the new form does not have.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The agent may have executed the request or not.
    pub async fn register(&self, service: &ServiceDefinition) -> Result<(), ConsulError> {
        let addresses = service.tagged_addresses.iter().map(|(name, tagged)| {
            let address = &tagged.address;
            let port = tagged.port;
            (name.as_str(), AddressBody { address, port })
        });
        let body = RegisterBody {
            id: &service.id,
            name: &service.name,
            address: &service.address,
            port: service.port,
            tags: &service.tags,
            meta: &service.meta,
            weights: service.weights.map(|weights| WeightsBody {
                passing: weights.passing,
                warning: weights.warning,
            }),
            tagged_addresses: addresses.collect(),
            check: service.check.as_ref().map(|check| CheckBody {
                id: &check.id,
                ttl: in_go(check.ttl),
                status: check_status(check.status),
                deregister_critical_service_after: check.deregister_after.map(in_go),
            }),
        };
        let call = Call::new(Method::PUT, ["agent", "service", "register"])
            .flag("replace-existing-checks")
            .body(json(&body));
        self.done(call).await
    }

    /// Removes an instance from the agent and from the catalog: `/v1/agent/service/deregister/:id`. A
    /// missing instance is not an error.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The agent may have executed the request or not.
    pub async fn deregister(&self, id: &str) -> Result<(), ConsulError> {
        let call = Call::put(["agent", "service", "deregister", id]);
        match self.done(call).await {
            // Since 1.12 or so an unknown id is 404; before, it was a success.
            Err(error) if error.status().is_some_and(|status| status == 404) => Ok(()),
            outcome => outcome,
        }
    }

    /// Updates the status of a check with a time to live: `/v1/agent/check/update/:id`.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind). An agent that does not know the check responds with
    /// 404, or with 500 if it is an old one.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The agent may have executed the request or not.
    pub async fn update_check(
        &self,
        id: &str,
        status: HealthStatus,
        note: &str,
    ) -> Result<(), ConsulError> {
        let body = UpdateBody {
            status: check_status(status),
            output: note,
        };
        let call = Call::put(["agent", "check", "update", id]).body(json(&body));
        self.done(call).await
    }
}

fn json<T: Serialize>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).expect("texts and numbers can be written as JSON")
}
