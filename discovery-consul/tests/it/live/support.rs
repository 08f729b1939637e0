//! Shared parts of the tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery_consul::ConsulDiscoverer;
use discovery_consul::client::{
    CheckDefinition, ConsulClient, ConsulOptions, FollowOptions, ServiceDefinition,
};
use discovery_consul::options::DiscoveryOptions;
use discovery_consul::watch::{Datacenters, ShrinkGuard, WatchOptions};
use discovery_core::{ConfigProvider, DiscoveryProvider, ProviderState, SourceState};
use proxy_model::ClusterId;
use testkit::consul::ConsulAgent;
use testkit::time::{GUARD, within};

/// Longer than any guard: what takes this long cannot be the cause of anything here.
pub(crate) const NEVER: Duration = Duration::from_secs(600);

/// Short waits: what is found out by waiting is found out soon.
pub(crate) fn follow() -> FollowOptions {
    FollowOptions::default()
        .with_wait(Duration::from_secs(2))
        .with_backoff(Duration::from_millis(100))
        .with_backoff_max(Duration::from_secs(1))
}

/// Options for all datacenters, without periodic reads.
pub(crate) fn watch() -> WatchOptions {
    let shrink = ShrinkGuard::default().with_settle(Duration::from_secs(3));
    WatchOptions::default()
        .with_datacenters(Datacenters::All)
        .with_datacenters_interval(Duration::from_secs(1))
        .with_follow(follow())
        .with_reread(NEVER)
        .with_shrink(shrink)
}

pub(crate) fn consul(agent: &ConsulAgent) -> ConsulOptions {
    ConsulOptions::default()
        .with_address(agent.url())
        .with_request_timeout(Duration::from_secs(3))
}

pub(crate) fn options(agent: &ConsulAgent) -> DiscoveryOptions {
    DiscoveryOptions::default()
        .with_consul(consul(agent))
        .with_watch(watch())
}

/// Options for a source that publishes changes only since its query about them is answered: waits for the time of a
/// query and the settling of removals are longer than the test.
pub(crate) fn waiting_for_news(agent: &ConsulAgent) -> DiscoveryOptions {
    let watch = watch()
        .with_follow(follow().with_wait(NEVER))
        .with_shrink(ShrinkGuard::default().with_settle(NEVER));
    options(agent).with_watch(watch)
}

/// Returns a client of the tests' own, with time for an agent on a busy machine.
pub(crate) fn client_of(agent: &ConsulAgent) -> ConsulClient {
    ConsulClient::new(consul(agent).with_request_timeout(GUARD)).unwrap()
}

/// An instance with labels to be served, with a passing check of its id.
pub(crate) fn served(service: &str, id: &str, port: u16) -> ServiceDefinition {
    ServiceDefinition::new(service, port)
        .with_id(id)
        .with_tag("proxy.enable=true")
        .with_meta("proxy_routes_main_hosts", format!("{service}.example"))
        .with_check(CheckDefinition::ttl(id, Duration::from_secs(600)))
}

/// The source under test, as it publishes.
pub(crate) struct Published {
    pub(crate) provider: DiscoveryProvider,
}

impl Published {
    pub(crate) fn start(options: DiscoveryOptions) -> Self {
        let discoverer = ConsulDiscoverer::new(options).unwrap();
        let provider = discoverer.runner().start();
        Self { provider }
    }

    pub(crate) fn state(&self) -> Arc<ProviderState> {
        self.provider.state()
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

    /// Waits until a service has these destinations: port and priority, by datacenter, node and id.
    pub(crate) async fn service(&self, name: &str, destinations: &[(&str, u16, u32)]) {
        let wanted: BTreeMap<_, _> = destinations
            .iter()
            .map(|(id, port, priority)| ((*id).to_owned(), (*port, *priority)))
            .collect();
        let what = format!("{name} with {wanted:?}");
        self.when(&what, |state| {
            destinations_of(state, name) == Some(wanted.clone())
        })
        .await;
    }

    /// Waits until a problem with this code is there, or is not.
    pub(crate) async fn problem(&self, code: &str, is_there: bool) {
        let what = format!("problem {code}: {is_there}");
        self.when(&what, |state| {
            state.problems.iter().any(|p| p.code == code) == is_there
        })
        .await;
    }

    /// Waits until the source has this state.
    pub(crate) async fn is(&self, wanted: SourceState) {
        self.when(wanted.as_str(), |state| state.status.state == wanted)
            .await;
    }
}

/// Returns the destinations of a service. `None` if it does not exist.
pub(crate) fn destinations_of(
    state: &ProviderState,
    name: &str,
) -> Option<BTreeMap<String, (u16, u32)>> {
    let cluster = state
        .config
        .as_ref()?
        .clusters
        .get(&ClusterId::from(name))?;
    let destinations = cluster.destinations.iter().map(|(id, destination)| {
        let port = destination.address.rsplit(':').next().unwrap();
        (
            id.to_string(),
            (port.parse().unwrap(), destination.priority.unwrap()),
        )
    });
    Some(destinations.collect())
}
