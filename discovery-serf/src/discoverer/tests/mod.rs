//! Discovery as a whole, over agents in memory, in virtual time.

mod agents;
mod auth;
mod events;
mod failures;
mod holding;
mod lifecycle;
mod persisted;

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{ConfigProvider, Discoverer, DiscoveryProvider, ProviderState, SourceState};
use proxy_model::config::ProxyConfig;
use tokio::time::{Instant, sleep, timeout};

use super::{Dial, SerfDiscoverer, Transport};
use crate::member::{Member, MemberStatus, Tags};
use crate::options::{HoldOptions, SerfOptions};
use crate::testing::AgentInMemory;

/// A guard against hanging, in virtual time.
const LONG: Duration = Duration::from_secs(24 * 3600);

const HOUR: Duration = Duration::from_secs(3600);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An instance of a service on a node `{service}{number}`.
fn instance(service: &str, number: u8) -> Member {
    let tags = Tags::from([
        ("service", service),
        ("http-port", "5000"),
        ("host", &format!("{service}.local")),
    ]);
    let address = Ipv4Addr::new(10, 0, 0, number);
    Member::new(format!("{service}{number}"), address.into(), tags)
}

/// An agent on the node `gw` with two instances of `orders` and one of `payments`.
fn agent() -> AgentInMemory {
    let agent = AgentInMemory::new("gw");
    populate(&agent);
    agent
}

fn populate(agent: &AgentInMemory) {
    for (service, number) in [("orders", 1), ("orders", 2), ("payments", 3)] {
        agent.put(instance(service, number));
    }
}

/// The destinations made from [`agent`].
const ALL: [&str; 3] = [
    "orders=10.0.0.1:5000",
    "orders=10.0.0.2:5000",
    "payments=10.0.0.3:5000",
];

fn discoverer(agent: &AgentInMemory) -> SerfDiscoverer {
    with_options(agent, SerfOptions::default())
}

fn with_options(agent: &AgentInMemory, options: SerfOptions) -> SerfDiscoverer {
    SerfDiscoverer::new(options).with_dialer(agent.clone())
}

/// Agents by their addresses.
#[derive(Clone, Default)]
struct Network(BTreeMap<String, AgentInMemory>);

impl Network {
    fn of<const N: usize>(agents: [(&str, &AgentInMemory); N]) -> Self {
        let agents = agents.map(|(address, agent)| (address.to_owned(), agent.clone()));
        Self(agents.into())
    }

    fn discoverer(&self, addresses: &[&str]) -> SerfDiscoverer {
        let options = SerfOptions::of(addresses.iter().copied());
        SerfDiscoverer::new(options).with_dialer(self.clone())
    }
}

#[async_trait]
impl Dial for Network {
    async fn dial(&self, address: &str) -> io::Result<Box<dyn Transport>> {
        match self.0.get(address) {
            Some(agent) => agent.dial(address).await,
            None => Err(io::ErrorKind::HostUnreachable.into()),
        }
    }
}

/// The destinations of a configuration as `service=address`, by service and address.
fn destinations(config: &ProxyConfig) -> Vec<String> {
    let clusters = config.clusters.iter();
    let mut all: Vec<_> = clusters
        .flat_map(|(id, cluster)| {
            let service = id.as_str().trim_start_matches("service:");
            let addresses = cluster.destinations.values();
            addresses.map(move |destination| {
                let address = destination.address.trim_start_matches("http://");
                format!("{service}={address}")
            })
        })
        .collect();
    all.sort();
    all
}

/// Returns the result of one successful cycle.
async fn cycle(discoverer: &SerfDiscoverer) -> Vec<String> {
    let discovery = discoverer.discover().await.expect("the cycle works");
    let mut all = Vec::new();
    for service in &discovery.services {
        if let discovery_core::ServiceContent::Config(config) = &service.content {
            all.extend(destinations(config));
        }
    }
    all.sort();
    all
}

/// A runner, and its state.
struct Running {
    provider: DiscoveryProvider,
}

impl Running {
    fn start(discoverer: &SerfDiscoverer) -> Self {
        Self {
            provider: discoverer.runner().start(),
        }
    }

    /// One that serves everything of [`agent`] already.
    async fn serving(discoverer: &SerfDiscoverer) -> Self {
        let running = Self::start(discoverer);
        running.until_serves(&ALL).await;
        running
    }

    fn state(&self) -> Arc<ProviderState> {
        self.provider.state()
    }

    fn serves(&self) -> Vec<String> {
        self.state()
            .config
            .as_deref()
            .map_or_else(Vec::new, destinations)
    }

    /// Returns the codes of the problems of the last result.
    fn problems(&self) -> Vec<String> {
        let state = self.state();
        state.problems.iter().map(|p| p.code.to_string()).collect()
    }

    fn error(&self) -> String {
        let state = self.state();
        let error = state.status.last_error.as_ref();
        error.map_or_else(String::new, |error| error.message.clone())
    }

    /// Waits for a state. Returns how long it took.
    async fn until(&self, mut is_so: impl FnMut(&ProviderState) -> bool) -> Duration {
        let start = Instant::now();
        let mut states = self.provider.subscribe();
        let waited = timeout(LONG, states.wait_for(|state| is_so(state))).await;
        waited.expect("in time").expect("the runner runs");
        start.elapsed()
    }

    async fn until_serves(&self, expected: &[&str]) -> Duration {
        self.until(|state| {
            let config = state.config.as_deref();
            config.is_some_and(|config| destinations(config) == expected)
        })
        .await
    }

    async fn until_is(&self, source: SourceState) -> Duration {
        self.until(|state| state.status.state == source).await
    }
}
