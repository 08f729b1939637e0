use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::agent::SerfAgent;
use super::place::{Place, own_loopback};
use crate::peers::Peer;

/// The settings of an agent; see [`Serf::agent`](super::Serf::agent).
#[derive(Clone, Debug)]
#[must_use = "nothing runs until it is started"]
pub struct SerfAgentBuilder {
    pub(super) program: Peer,
    pub(super) name: String,
    ip: Option<IpAddr>,
    join: Vec<SocketAddr>,
    tags: Vec<String>,
    pub(super) auth_key: Option<String>,
    keeps_tags: bool,
    keeps_peers: bool,
}

/// The command of an agent with known ports, also for restarts.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) program: Peer,
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) arguments: Vec<String>,
    pub(super) auth_key: Option<String>,
    /// The agent's files; deleted with it.
    _folder: Arc<TempDir>,
}

impl SerfAgentBuilder {
    pub(super) fn new(program: Peer, name: String) -> Self {
        Self {
            program,
            name,
            ip: None,
            join: Vec::new(),
            tags: Vec::new(),
            auth_key: None,
            keeps_tags: false,
            keeps_peers: false,
        }
    }

    /// Sets a tag from the start.
    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.tags.push(format!("{key}={value}"));
        self
    }

    /// Joins the cluster of `other` each time this agent starts. Retries until it succeeds.
    pub fn join(mut self, other: &SerfAgent) -> Self {
        self.join.push(other.gossip_addr());
        self
    }

    /// Requires this key of RPC clients.
    pub fn auth_key(mut self, key: impl Into<String>) -> Self {
        self.auth_key = Some(key.into());
        self
    }

    /// Listens on `[::1]`. Agents of one cluster must all do so, or none.
    pub fn ipv6(mut self) -> Self {
        self.ip = Some(Ipv6Addr::LOCALHOST.into());
        self
    }

    /// Keeps the tags in a file over restarts. Such an agent cannot have tags from the start.
    pub fn keep_tags(mut self) -> Self {
        self.keeps_tags = true;
        self
    }

    /// Keeps known members in a file, and joins them again after a restart.
    pub fn keep_peers(mut self) -> Self {
        self.keeps_peers = true;
        self
    }

    /// Starts the agent and waits until it responds to RPC. It may not have joined by then: see
    /// [`SerfAgent::wait_for`].
    ///
    /// # Panics
    ///
    /// With its output when it does not start.
    pub async fn start(self) -> SerfAgent {
        // Another program may take a port between its choice and the start. One retry is enough.
        match SerfAgent::start(self.recipe()).await {
            Ok(agent) => agent,
            Err(failed) if failed.is_for_a_taken_port() => {
                let again = SerfAgent::start(self.recipe()).await;
                again.unwrap_or_else(|failed| panic!("{failed}"))
            }
            Err(failed) => panic!("{failed}"),
        }
    }

    pub(super) fn recipe(&self) -> Recipe {
        let place = Place::free_on(self.ip.unwrap_or_else(own_loopback));
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        let file = |name: &str| in_text(folder.path().join(name));
        let mut arguments = vec![
            format!("-node={}", self.name),
            format!("-bind={}", place.gossip),
            format!("-rpc-addr={}", place.rpc),
            "-profile=local".to_owned(),
            "-log-level=debug".to_owned(),
        ];
        for other in &self.join {
            arguments.push(format!("-retry-join={other}"));
        }
        arguments.push("-retry-interval=200ms".to_owned());
        for tag in &self.tags {
            arguments.push(format!("-tag={tag}"));
        }
        if self.keeps_tags {
            arguments.push(format!("-tags-file={}", file("tags.json")));
        }
        if self.keeps_peers {
            arguments.push(format!("-snapshot={}", file("snapshot")));
        }
        if let Some(key) = &self.auth_key {
            let config = serde_json::json!({ "rpc_auth": key }).to_string();
            fs::write(file("agent.json"), config).expect("the folder is ours");
            arguments.push(format!("-config-file={}", file("agent.json")));
        }
        Recipe {
            program: self.program.clone(),
            name: self.name.clone(),
            place,
            arguments,
            auth_key: self.auth_key.clone(),
            _folder: Arc::new(folder),
        }
    }
}

fn in_text(path: PathBuf) -> String {
    let path = path.into_os_string().into_string();
    path.expect("temporary folders have names in UTF-8")
}
