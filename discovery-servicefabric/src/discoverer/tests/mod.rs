//! Discovery as a whole, over a cluster in memory.

mod cases;
mod cycles;
mod failures;
mod live_replicas;
mod names;
mod naming;
mod parts;
mod properties;
mod slow;
mod timing;
mod unreachable;
mod unread;
mod unusable;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{
    ConfigProvider, CycleReport, DiscoveredService, Discoverer, Discovery, DiscoveryProvider,
    ServiceContent,
};
use proxy_model::config::ProxyConfig;

use super::{ServiceFabric, ServiceFabricDiscoverer};
use crate::options::ServiceFabricOptions;
use crate::testing::FakeCluster;

/// Labels that serve a service under one route.
const LABELS: [(&str, &str); 2] = [
    ("YARP.Enable", "true"),
    ("YARP.Routes.r1.Path", "/{**catch-all}"),
];

/// The same labels, and one that is wrong.
const WRONG: [(&str, &str); 3] = [
    ("YARP.Enable", "true"),
    ("YARP.Routes.r1.Path", "/{**catch-all}"),
    ("YARP.Routes.r1.Order", "abc"),
];

/// A cluster with one service, `fabric:/A/Web`, and its instances in the partition `p`.
fn one_service(labels: &[(&str, &str)], instances: &[(i64, &str)]) -> FakeCluster {
    let cluster = FakeCluster::new();
    edit(&cluster, labels, instances);
    cluster
}

/// Replaces the service of such a cluster.
fn edit(cluster: &FakeCluster, labels: &[(&str, &str)], instances: &[(i64, &str)]) {
    cluster.edit(|contents| {
        *contents = Default::default();
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", labels.iter().copied())
            .application("fabric:/A", "T", "1", [])
            .stateless("fabric:/A/Web", "S", [("p", instances.to_vec())]);
    });
}

/// Waits until everything was read, and returns the report. Types are read every ten minutes at the latest.
async fn after_a_while(running: &Running) -> Arc<CycleReport> {
    let now = running.provider.state().status.cycles;
    running.report(now + 40).await
}

/// Two applications with one type, two services in each.
fn cluster() -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", LABELS)
            .service_type_with("T", "1", "Plain", Some(Vec::new()));
        for (app, ids) in [("A", ["a1", "a2"]), ("B", ["b1", "b2"])] {
            contents.application(&format!("fabric:/{app}"), "T", "1", []);
            for (at, id) in (1..).zip(ids) {
                let name = format!("fabric:/{app}/S{at}");
                let address = format!("https://{id}:443");
                contents.stateless(&name, "S", [(id, vec![(at, address.as_str())])]);
            }
        }
    });
    cluster
}

fn discoverer(cluster: &FakeCluster) -> ServiceFabricDiscoverer {
    with_options(cluster, ServiceFabricOptions::default())
}

fn with_options(cluster: &FakeCluster, options: ServiceFabricOptions) -> ServiceFabricDiscoverer {
    ServiceFabric::new(cluster.clone())
        .options(options)
        .discoverer()
}

/// The addresses of each service's destinations. `None` if it could not be read.
type Addresses = BTreeMap<String, Option<Vec<String>>>;

fn addresses(discovery: &Discovery) -> Addresses {
    let of = |service: &DiscoveredService| match &service.content {
        ServiceContent::Config(config) => Some(addresses_in(config)),
        _ => None,
    };
    discovery
        .services
        .iter()
        .map(|service| (service.name.to_string(), of(service)))
        .collect()
}

fn addresses_in(config: &ProxyConfig) -> Vec<String> {
    let destinations = config
        .clusters
        .values()
        .flat_map(|cluster| cluster.destinations.values());
    destinations
        .map(|destination| destination.address.clone())
        .collect()
}

/// One cycle that works.
async fn cycle(discoverer: &ServiceFabricDiscoverer) -> Discovery {
    discoverer.discover().await.expect("the cycle works")
}

/// The next whole cycle: a period later.
async fn next(discoverer: &ServiceFabricDiscoverer) -> Discovery {
    tokio::time::advance(discoverer.runner_options().interval).await;
    cycle(discoverer).await
}

/// A runner, and its reports.
struct Running {
    provider: DiscoveryProvider,
}

impl Running {
    fn start(discoverer: &ServiceFabricDiscoverer) -> Self {
        Self {
            provider: discoverer.runner().start(),
        }
    }

    /// Waits for the report of the first successful cycle from this one on.
    async fn report(&self, cycle: u64) -> Arc<CycleReport> {
        let mut reports = self.provider.reports();
        let is_it = |report: &Option<Arc<CycleReport>>| {
            report.as_ref().is_some_and(|report| report.cycle >= cycle)
        };
        let guard = Duration::from_secs(24 * 3600);
        let found = tokio::time::timeout(guard, reports.wait_for(is_it)).await;
        found
            .expect("there is a cycle within a day")
            .expect("the runner runs")
            .clone()
            .expect("it was waited for")
    }

    fn config(&self) -> Arc<ProxyConfig> {
        self.provider.state().config.clone().unwrap_or_default()
    }

    fn served(&self) -> Vec<String> {
        let config = self.config();
        config.clusters.keys().map(ToString::to_string).collect()
    }

    fn state(&self) -> discovery_core::SourceState {
        self.provider.subscribe().borrow().status.state
    }
}
