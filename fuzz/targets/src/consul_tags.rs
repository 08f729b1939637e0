//! Tags of Consul instances, in our syntax and in Traefik's.

use discovery_consul::ConsulDiscoverer;
use discovery_consul::client::ServiceDefinition;
use discovery_consul::options::DiscoveryOptions;
use discovery_consul::testing::FakeConsul;
use discovery_core::runner::Once;
use proxy_model::{CompileOptions, Snapshot};

use crate::input::{check_wording, paused, text};

/// Maximum number of instances.
const MAX_INSTANCES: usize = 16;

/// Fuzzes the tags of a service: one tag per line. An empty line begins another instance.
///
/// ```text
/// traefik.enable=true
/// traefik.http.routers.web.rule=Host(`a.example`) && PathPrefix(`/x`)
/// ```
///
/// * The resulting configuration compiles and concerns only this service.
/// * Each problem is one line.
/// * Instances count in the order of their names, not of their registration.
/// * A second service is served whatever the tags are.
pub fn consul_tags(data: &[u8]) {
    let text = text(data);
    let instances: Vec<Vec<&str>> = text
        .split("\n\n")
        .take(MAX_INSTANCES)
        .map(|tags| tags.lines().collect())
        .collect();
    let numbered: Vec<_> = instances.iter().enumerate().collect();
    let backwards: Vec<_> = numbered.iter().rev().copied().collect();
    let (once, other) = (discovered(&numbered), discovered(&backwards));
    let config = once.state.config.as_deref().expect("the beacon is served");
    assert_eq!(Some(config), other.state.config.as_deref());
    assert!(config.clusters.keys().any(|id| id.as_str() == "beacon"));
    let compiled = Snapshot::compile(config.clone(), &CompileOptions::default());
    assert!(compiled.is_ok(), "{compiled:?}");
    for problem in &once.state.problems {
        check_wording(problem);
    }
}

fn discovered(instances: &[(usize, &Vec<&str>)]) -> Once {
    let consul = FakeConsul::new("sas");
    let beacon = ServiceDefinition::new("beacon", 80)
        .with_tag("proxy.enable=true")
        .with_tag("proxy.cluster.id=beacon")
        .with_tag("proxy.routes.main.hosts=beacon.invalid");
    consul.register("sas", "beacon", beacon);
    for (number, tags) in instances {
        let mut instance = ServiceDefinition::new("web", 8080).with_id(format!("web-{number}"));
        for tag in *tags {
            instance = instance.with_tag(*tag);
        }
        consul.register("sas", &format!("n{number}"), instance);
    }
    let runtime = paused();
    let once = runtime.block_on(async {
        let options = DiscoveryOptions::default();
        let discoverer = ConsulDiscoverer::with_client(consul.client(), options);
        discoverer.runner().run_once().await
    });
    runtime.shutdown_background();
    once
}
