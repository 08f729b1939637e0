//! Discovery of an emulated cluster, by way of the client and real sockets.
#![cfg(feature = "reqwest")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{ConfigProvider, DiscoveryProvider, ProviderState, SourceState};
use discovery_servicefabric::client::Client;
use discovery_servicefabric::{
    EndpointSource, ServiceFabric, ServiceFabricDiscoverer, ServiceFabricOptions,
};
use proxy_model::config::ProxyConfig;
use servicefabric_emulator::cluster::{Cluster, FabricName, PartitionId, ReplicaRef};
use servicefabric_emulator::gateway::{Emulator, Fault, FaultAction};
use servicefabric_emulator::health::{EntityKey, HealthState};
use servicefabric_emulator::hosting::Span;
use servicefabric_emulator::topology::Topology;

const TOPOLOGY: &str = r#"
[cluster]
nodes = 3

[[application_types]]
name = "ShopType"
parameters = { Host = "shop.invalid" }

[application_types.service_types.WebType]
labels = { "YARP.Enable" = true, "YARP.Routes.web.Hosts" = "[Host]" }
endpoints = { https = {} }

[application_types.service_types.CartType]
kind = "stateful"
labels = { "YARP.Enable" = true, "YARP.Routes.cart.Path" = "/cart/{**rest}" }
endpoints = { https = {} }

[application_types.service_types.BadType]
labels = { "YARP.Enable" = true, "YARP.Routes.r.Order" = "first" }

[application_types.service_types.PlainType]

[applications.Shop]
type = "ShopType"
parameters = { Host = "shop.example" }

[applications.Shop.services]
Web = { type = "WebType", instances = 2, instance_close_delay = 600 }
Cart = { type = "CartType", partitions = { ranges = { count = 2, low = 0, high = 99 } } }
Bad = { type = "BadType" }
Plain = { type = "PlainType" }

[applications.Other]
type = "ShopType"

[applications.Other.services]
Web = { type = "WebType", instances = 1 }
"#;

/// The time limit of a test, which only a hanging one exceeds.
const GUARD: Duration = Duration::from_secs(60);

struct Running {
    emulator: Emulator,
    discoverer: ServiceFabricDiscoverer,
    provider: DiscoveryProvider,
}

impl Running {
    async fn start(options: ServiceFabricOptions) -> Self {
        Self::start_with(TOPOLOGY, options).await
    }

    async fn start_with(topology: &str, options: ServiceFabricOptions) -> Self {
        let topology = Topology::from_toml(topology).unwrap();
        let emulator = Emulator::builder(topology)
            .listen("127.0.0.1:0")
            .manual_time()
            // Everything takes several pages.
            .page_size(1)
            .report_interval(Duration::ZERO)
            .start()
            .await
            .unwrap();
        emulator.advance(Duration::from_secs(600));
        let client = Client::builder(emulator.endpoint()).build().unwrap();
        // Every cycle is a whole one, and the runner makes one every quarter of a second.
        let options = options.with_discovery_period(Duration::from_millis(100));
        let discoverer = ServiceFabric::new(client).options(options).discoverer();
        let provider = discoverer.runner().start();
        Self {
            emulator,
            discoverer,
            provider,
        }
    }

    async fn when(&self, is_so: impl Fn(&ProviderState) -> bool) -> Arc<ProviderState> {
        let mut states = self.provider.subscribe();
        let wait = states.wait_for(|state| is_so(state));
        let found = tokio::time::timeout(GUARD, wait).await;
        let found = found.map(|state| Arc::clone(&state.expect("the runner runs")));
        found.unwrap_or_else(|_| panic!("it never was so: {:?}", self.provider.state()))
    }

    /// Waits until the configuration is so.
    async fn config(&self, is_so: impl Fn(&ProxyConfig) -> bool) -> Arc<ProxyConfig> {
        let is_so = |state: &ProviderState| state.config.as_deref().is_some_and(&is_so);
        self.when(is_so).await.config.clone().unwrap()
    }

    /// Waits until this many more cycles have succeeded.
    async fn cycles(&self, more: u64) {
        let mut reports = self.provider.reports();
        let cycle = |report: &Option<Arc<discovery_core::CycleReport>>| {
            report.as_ref().map_or(0, |report| report.cycle)
        };
        let target = cycle(&reports.borrow()) + more;
        let wait = reports.wait_for(|report| cycle(report) >= target);
        tokio::time::timeout(GUARD, wait).await.unwrap().unwrap();
    }

    fn cluster<R>(&self, look: impl FnOnce(&mut Cluster) -> R) -> R {
        self.emulator.with_cluster(look)
    }

    /// Returns the reports of discovery about a service.
    fn told(&self, service: &str) -> Vec<(HealthState, String)> {
        let name = FabricName::parse(service).unwrap();
        self.cluster(|cluster| {
            let events = cluster.health_store().events(&EntityKey::Service(name));
            let of_us = events.iter().filter(|event| event.report.source == "YARP");
            let told = of_us.map(|event| (event.state(), event.report.description.clone()));
            told.collect()
        })
    }

    fn partition(&self, service: &str) -> PartitionId {
        let name = FabricName::parse(service).unwrap();
        self.cluster(|cluster| {
            let partitions = &cluster.service(&name).unwrap().partitions;
            *partitions.first().unwrap()
        })
    }
}

fn destinations(config: &ProxyConfig, cluster: &str) -> BTreeSet<String> {
    let found = config
        .clusters
        .iter()
        .find(|(id, _)| id.as_str() == cluster);
    let found = found.into_iter().flat_map(|(_, of)| of.destinations.iter());
    found
        .map(|(id, of)| format!("{id} {}", of.address))
        .collect()
}

const WEB: &str = "fabric:/Shop/Web";

#[tokio::test]
async fn services_of_a_cluster_become_configuration_and_the_cluster_is_told() {
    let running = Running::start(ServiceFabricOptions::default()).await;
    let config = running.config(|config| config.clusters.len() == 3).await;
    assert_eq!(destinations(&config, WEB).len(), 2);
    assert_eq!(destinations(&config, "fabric:/Shop/Cart").len(), 6);
    assert_eq!(destinations(&config, "fabric:/Other/Web").len(), 1);
    let hosts: Vec<_> = config
        .routes
        .iter()
        .map(|(id, route)| (id.as_str(), route.r#match.hosts.clone().unwrap_or_default()))
        .collect();
    assert_eq!(
        hosts,
        [
            // Labels and parameters of each application, its own over those of the type.
            (
                "fabric%3A%2FOther%2FWeb:web",
                vec!["shop.invalid".to_owned()]
            ),
            ("fabric%3A%2FShop%2FCart:cart", vec![]),
            (
                "fabric%3A%2FShop%2FWeb:web",
                vec!["shop.example".to_owned()]
            ),
        ]
    );
    running.cycles(2).await;
    let told = |service: &str| running.told(service);
    let [(state, text)] = &told(WEB)[..] else {
        panic!("{:?}", told(WEB));
    };
    assert_eq!(*state, HealthState::Ok, "{text}");
    let [(state, text)] = &told("fabric:/Shop/Bad")[..] else {
        panic!("{:?}", told("fabric:/Shop/Bad"));
    };
    assert_eq!(*state, HealthState::Warning);
    assert!(text.contains("YARP.Routes.r.Order"), "{text}");
    assert_eq!(told("fabric:/Shop/Plain"), []);
    let told = running.discoverer.decisions();
    assert!(
        told.decisions
            .iter()
            .any(|of| &*of.name == "fabric:/Shop/Bad")
    );
    running.emulator.shutdown().await;
}

/// Each service of the example with wrong labels is rejected or reported for the reason in the name of its type, and
/// the right one is served.
#[tokio::test]
async fn the_labels_that_an_example_calls_wrong_are_wrong() {
    let options = ServiceFabricOptions::default().with_discover_insecure_http_destinations(true);
    let topology = include_str!("../../../../servicefabric-emulator/topologies/broken-labels.toml");
    let running = Running::start_with(topology, options).await;
    let config = running.config(|config| !config.routes.is_empty()).await;
    running.cycles(2).await;
    let told = |service: &str| running.told(&format!("fabric:/Mixed/{service}"));
    let (state, text) = told("Good").remove(0);
    assert_eq!(state, HealthState::Ok, "{text}");
    assert_eq!(destinations(&config, "fabric:/Mixed/Good").len(), 2);
    for (service, reason) in [
        ("NoRouteMatch", "YARP.Routes.empty"),
        ("BadInterval", "YARP.Backend.HealthCheck.Active.Interval"),
        ("BadHeaderMode", "YARP.Routes.r.MatchHeaders.[0].Mode"),
        ("UnknownListener", "`grpc`"),
        ("Twice", "YARP.Enable"),
    ] {
        let (state, text) = told(service).remove(0);
        assert_eq!(state, HealthState::Warning, "{service}: {text}");
        assert!(text.contains(reason), "{service}: {text}");
        assert_eq!(
            destinations(&config, &format!("fabric:/Mixed/{service}")).len(),
            0
        );
    }
    assert_eq!(told("NotEnabled"), []);
    running.emulator.shutdown().await;
}

#[tokio::test]
async fn an_instance_that_moves_is_followed_and_nothing_else_is_asked_about() {
    let running = Running::start(ServiceFabricOptions::default()).await;
    let before = running.config(|config| config.clusters.len() == 3).await;
    running.cycles(3).await;
    // The other service has not changed, so it is not polled, and this failure has no effect.
    let broken = Fault::new(
        "/Services/Other~Web/*",
        FaultAction::fail(503, "FABRIC_E_NOT_READY"),
    );
    running.emulator.faults().inject(broken).unwrap();
    let partition = running.partition(WEB);
    running.cluster(|cluster| cluster.move_instance(partition, None, None).unwrap());
    running.emulator.advance(Duration::from_secs(1200));
    let old = destinations(&before, WEB);
    let after = running
        .config(|config| {
            let new = destinations(config, WEB);
            new.len() == 2 && new != old
        })
        .await;
    assert_eq!(
        destinations(&after, "fabric:/Other/Web"),
        destinations(&before, "fabric:/Other/Web")
    );
    running.cycles(2).await;
    let state = running.provider.state();
    assert!(
        state
            .problems
            .iter()
            .all(|problem| problem.code != "stale_answer"),
        "{}",
        state.problems
    );
    running.emulator.shutdown().await;
}

/// 65
#[tokio::test]
async fn an_instance_that_drains_is_left_out_when_the_naming_service_is_asked() {
    for source in [EndpointSource::Replicas, EndpointSource::ReplicasAndResolve] {
        let options = ServiceFabricOptions::default().with_endpoint_source(source);
        let running = Running::start(options).await;
        running
            .config(|config| destinations(config, WEB).len() == 2)
            .await;
        let partition = running.partition(WEB);
        let drained = running.cluster(|cluster| {
            let replicas = &cluster.partition(partition).unwrap().replicas;
            let replica = *replicas.keys().next().unwrap();
            let instance = ReplicaRef { partition, replica };
            cluster
                .drain_instance(instance, Span::from_secs(3600))
                .unwrap();
            replica.to_string()
        });
        running.emulator.advance(Duration::from_secs(60));
        let is_there = |config: &ProxyConfig| {
            let mut all = destinations(config, WEB).into_iter();
            all.any(|destination| destination.contains(&drained))
        };
        match source {
            EndpointSource::Replicas => {
                running.cycles(4).await;
                assert!(is_there(&running.provider.state().config.clone().unwrap()));
            }
            _ => drop(running.config(|config| !is_there(config)).await),
        }
        running.emulator.shutdown().await;
    }
}

#[tokio::test]
async fn a_gateway_that_fails_takes_nothing_away() {
    let options = ServiceFabricOptions::default().with_cache_duration(Duration::ZERO);
    let running = Running::start(options).await;
    let before = running.config(|config| config.clusters.len() == 3).await;
    let broken = Fault::new("/*", FaultAction::fail(503, "FABRIC_E_NO_WRITE_QUORUM"));
    running.emulator.faults().inject(broken).unwrap();
    let state = running
        .when(|state| state.status.state == SourceState::Failing)
        .await;
    assert_eq!(state.config.as_ref(), Some(&before));
    running.emulator.faults().clear();
    let state = running
        .when(|state| state.status.state == SourceState::Live)
        .await;
    assert_eq!(state.config.as_ref(), Some(&before));

    // What is deleted goes, although everything else stays.
    let name = FabricName::parse("fabric:/Other").unwrap();
    running.cluster(|cluster| cluster.delete_application(&name).unwrap());
    running.emulator.advance(Duration::from_secs(60));
    let after = running.config(|config| config.clusters.len() == 2).await;
    assert_eq!(destinations(&after, WEB), destinations(&before, WEB));
    running.emulator.shutdown().await;
}
