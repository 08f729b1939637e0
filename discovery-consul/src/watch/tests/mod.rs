//! Watches of a Consul in memory, by what they show and by the requests that they make.

mod counting;
mod datacenters;
mod safety;

use std::sync::Arc;
use std::time::Duration;

use testkit::time::guarded;
use tokio::sync::watch;
use tokio::time::sleep;

use super::*;
use crate::client::{CheckDefinition, HealthStatus, ServiceDefinition};
use crate::testing::FakeConsul;

/// An instance with a check of the same id.
pub(super) fn checked(service: &str, id: &str, port: u16) -> ServiceDefinition {
    let check = CheckDefinition::ttl(id, Duration::from_secs(600));
    ServiceDefinition::new(service, port)
        .with_id(id)
        .with_check(check)
}

/// A watch under test.
pub(super) struct Watched {
    pub(super) consul: FakeConsul,
    states: watch::Receiver<Arc<WatchState>>,
    _watch: ConsulWatch,
}

impl Watched {
    /// Watches, and waits until everything was read.
    pub(super) async fn start(consul: &FakeConsul, options: WatchOptions) -> Self {
        let mut watched = Self::begin(consul, options);
        watched
            .when("complete", |state| {
                let all = &state.datacenters;
                !all.is_empty() && all.iter().all(|datacenter| datacenter.is_complete)
            })
            .await;
        watched
    }

    pub(super) fn begin(consul: &FakeConsul, options: WatchOptions) -> Self {
        let watch = ConsulWatch::start(consul.client(), options);
        Self {
            consul: consul.clone(),
            states: watch.states(),
            _watch: watch,
        }
    }

    pub(super) fn state(&self) -> Arc<WatchState> {
        Arc::clone(&self.states.borrow())
    }

    pub(super) fn datacenter(&self, name: &str) -> Arc<DatacenterState> {
        let state = self.state();
        let found = state.datacenters.iter().find(|dc| *dc.datacenter == *name);
        Arc::clone(found.unwrap_or_else(|| panic!("no {name} in {state:#?}")))
    }

    pub(super) async fn when(&mut self, what: &str, is_so: impl Fn(&WatchState) -> bool) {
        let wait = self.states.wait_for(|state| is_so(state));
        guarded(what, wait).await.unwrap();
    }

    /// Waits until a service of a datacenter has these instances, by id.
    pub(super) async fn has(
        &mut self,
        datacenter: &str,
        service: &str,
        ids: &[(&str, HealthStatus)],
    ) {
        let what = format!("{service} in {datacenter} with {ids:?}");
        self.when(&what, |state| {
            let found = state
                .datacenters
                .iter()
                .find(|dc| *dc.datacenter == *datacenter);
            let service = found.and_then(|found| found.services.get(service));
            let instances = service.map(|service| service.instances.as_slice());
            let there = instances.unwrap_or_default().iter();
            there
                .map(|i| (i.id.as_str(), i.status))
                .eq(ids.iter().copied())
        })
        .await;
    }

    /// Number of instances of a datacenter.
    pub(super) fn instances(&self, datacenter: &str) -> usize {
        let datacenter = self.datacenter(datacenter);
        let services = datacenter.services.values();
        services.map(|service| service.instances.len()).sum()
    }

    /// Lets time pass.
    pub(super) async fn pass(&self, seconds: u64) {
        sleep(Duration::from_secs(seconds)).await;
    }

    /// Number of reads of single services since a count.
    pub(super) fn reads_since(&self, before: usize) -> usize {
        self.consul.count("health/service/") - before
    }
}

/// A Consul with services of three instances each.
pub(super) fn consul_with(services: usize) -> FakeConsul {
    let consul = FakeConsul::new("sas");
    for service in 0..services {
        let name = format!("s{service:04}");
        for nth in 0..3 {
            let node = format!("n{nth}");
            consul.register("sas", &node, checked(&name, &format!("{name}-{nth}"), 80));
        }
    }
    consul
}
