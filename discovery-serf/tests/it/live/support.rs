//! Shared parts of the tests: a source that polls real agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{ConfigProvider, DiscoveryProvider, ProviderState, SourceState};
use discovery_serf::client::{ConnectOptions, SerfClient};
use discovery_serf::{SerfDiscoverer, SerfOptions};
use proxy_model::ClusterId;
use proxy_model::config::ProxyConfig;
use testkit::serf::{SerfAgent, SerfAgentBuilder};
use testkit::time::{GUARD, within};

/// No timer of the source can be the cause of anything here: it is longer than any guard.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// Returns the options of a source at these agents that is triggered only by events.
pub(crate) fn options(agents: &[&SerfAgent]) -> SerfOptions {
    let addresses = agents.iter().map(|agent| agent.rpc_addr().to_string());
    SerfOptions::of(addresses).with_reconcile_interval(NEVER)
}

pub(crate) fn connection_to(agent: &SerfAgent) -> ConnectOptions {
    ConnectOptions::new(agent.rpc_addr().to_string())
}

pub(crate) async fn client_of(agent: &SerfAgent) -> SerfClient {
    SerfClient::connect(&connection_to(agent)).await.unwrap()
}

/// An instance of a service that is only the agent which announces it.
pub(crate) fn announcing(agent: SerfAgentBuilder, service: &str, port: u16) -> SerfAgentBuilder {
    let host = format!("{service}.example");
    agent
        .tag("service", service)
        .tag("http-port", &port.to_string())
        .tag("host", &host)
        .tag("instance", &format!("{service}-{port}"))
}

/// The source under test, as it publishes.
pub(crate) struct Published {
    pub(crate) discoverer: SerfDiscoverer,
    provider: DiscoveryProvider,
}

impl Published {
    pub(crate) fn start(options: SerfOptions) -> Self {
        let discoverer = SerfDiscoverer::new(options);
        let provider = discoverer.runner().start();
        Self {
            discoverer,
            provider,
        }
    }

    pub(crate) fn state(&self) -> Arc<ProviderState> {
        self.provider.state()
    }

    /// Number of changes of the configuration.
    pub(crate) fn changes(&self) -> u64 {
        self.state().status.changes
    }

    /// Waits until the state is so.
    pub(crate) async fn when(
        &self,
        what: &str,
        is_so: impl Fn(&ProviderState) -> bool,
    ) -> Arc<ProviderState> {
        let mut states = self.provider.subscribe();
        let wait = states.wait_for(|state| is_so(state));
        match within(GUARD, wait).await {
            Ok(state) => Arc::clone(&state.unwrap()),
            Err(_) => panic!("{what}: it never was so: {:#?}", self.state()),
        }
    }

    pub(crate) async fn when_in(&self, wanted: SourceState) -> Arc<ProviderState> {
        self.when(&format!("{wanted:?}"), |state| state.status.state == wanted)
            .await
    }

    /// Waits until a service has exactly these destinations, or does not exist if they are `None`.
    pub(crate) async fn service(&self, name: &str, destinations: Option<&[(&str, &str)]>) {
        let wanted = destinations.map(|destinations| {
            let pairs = destinations.iter();
            pairs
                .map(|(id, address)| ((*id).to_owned(), (*address).to_owned()))
                .collect()
        });
        let what = format!("{name} with {wanted:?}");
        self.when(&what, |state| destinations_of(state, name) == wanted)
            .await;
    }

    /// Waits for one more successful cycle.
    pub(crate) async fn next_cycle(&self) {
        let cycles = self.state().status.cycles;
        let mut reports = self.provider.reports();
        let wait = reports.wait_for(|report| report.as_ref().is_some_and(|r| r.cycle > cycles));
        within(GUARD, wait).await.unwrap().unwrap();
    }
}

/// Returns the destinations of a service and their addresses. `None` if it does not exist.
pub(crate) fn destinations_of(
    state: &ProviderState,
    service: &str,
) -> Option<BTreeMap<String, String>> {
    let config: &ProxyConfig = state.config.as_ref()?;
    let id = ClusterId::from(format!("service:{service}"));
    let cluster = config.clusters.get(&id)?;
    let pairs = cluster.destinations.iter();
    Some(
        pairs
            .map(|(id, destination)| (id.to_string(), destination.address.clone()))
            .collect(),
    )
}

/// The URL of an agent's service.
pub(crate) fn url(agent: &SerfAgent, port: u16) -> String {
    let ip = agent.gossip_addr().ip();
    format!("http://{}", std::net::SocketAddr::new(ip, port))
}
