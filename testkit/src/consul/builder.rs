use std::fs;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use super::agent::ConsulAgent;
use crate::peers::Peer;
use crate::serf::own_loopback;

/// The settings of an agent; see [`Consul::datacenter`](super::Consul::datacenter).
#[derive(Clone, Debug)]
#[must_use = "nothing runs until it is started"]
pub struct ConsulAgentBuilder {
    program: Peer,
    datacenter: String,
    join: Vec<IpAddr>,
    master_token: Option<String>,
}

/// The command of an agent at a known address, also for restarts.
#[derive(Clone, Debug)]
pub(super) struct ConsulRecipe {
    pub(super) program: Peer,
    pub(super) datacenter: String,
    pub(super) ip: IpAddr,
    pub(super) arguments: Vec<String>,
    pub(super) master_token: Option<String>,
    /// The configuration files; deleted with the agent.
    _folder: Arc<TempDir>,
}

impl ConsulAgentBuilder {
    pub(super) fn new(program: Peer, datacenter: String) -> Self {
        Self {
            program,
            datacenter,
            join: Vec::new(),
            master_token: None,
        }
    }

    /// Joins another datacenter over the WAN, also after a restart. Retries until it succeeds.
    pub fn join(mut self, other: &ConsulAgent) -> Self {
        self.join.push(other.ip());
        self
    }

    /// Denies everything without a token, and allows everything with this one.
    pub fn deny_all_but(mut self, master_token: impl Into<String>) -> Self {
        self.master_token = Some(master_token.into());
        self
    }

    /// Starts the agent, and waits until it is the leader and has registered itself.
    ///
    /// # Panics
    ///
    /// With its output when it does not start.
    pub async fn start(self) -> ConsulAgent {
        ConsulAgent::start(self.recipe()).await
    }

    fn recipe(self) -> ConsulRecipe {
        let ip = own_loopback();
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        let mut config = json!({
            "disable_update_check": true,
            "disable_remote_exec": true,
            // The default, on which tests rely.
            "limits": {"http_max_conns_per_client": 200},
        });
        if let Some(token) = &self.master_token {
            config["acl"] = json!({
                "enabled": true, "default_policy": "deny", "tokens": {"master": token, "agent": token},
            });
        }
        let file = folder.path().join("agent.json");
        fs::write(&file, config.to_string()).expect("the folder is ours");
        let mut arguments = vec![
            "-dev".to_owned(),
            format!("-config-file={}", file.display()),
            format!("-node={}-1", self.datacenter),
            format!("-datacenter={}", self.datacenter),
            format!("-bind={ip}"),
            format!("-client={ip}"),
            format!("-advertise={ip}"),
            format!("-serf-wan-bind={ip}"),
            format!("-advertise-wan={ip}"),
            "-retry-interval-wan=1s".to_owned(),
            "-log-level=warn".to_owned(),
        ];
        arguments.extend(
            self.join
                .iter()
                .map(|other| format!("-retry-join-wan={other}")),
        );
        ConsulRecipe {
            program: self.program,
            datacenter: self.datacenter,
            ip,
            arguments,
            master_token: self.master_token,
            _folder: Arc::new(folder),
        }
    }
}
