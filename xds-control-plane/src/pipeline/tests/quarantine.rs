//! Services in the admin API that are not served as they want to be.

use async_trait::async_trait;
use discovery_core::{DiscoverError, DiscoveredService, Discoverer, Discovery, Runner};
use proxy_model::Problem;
use proxy_model::config::ProxyConfig;

use super::*;
use crate::bridge::{BridgeOptions, provide};

/// A source with one service that is right, and one that cannot be served.
struct OneOfTwo;

#[async_trait]
impl Discoverer for OneOfTwo {
    fn name(&self) -> &str {
        "cluster"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let config = ProxyConfig::from_json(
            r#"{ "Routes": { "shop": { "ClusterId": "shop", "Match": { "Hosts": ["shop.example"] } } },
                 "Clusters": { "shop": { "Destinations": { "d": { "Address": "http://10.0.0.1:8080/" } } } } }"#,
        );
        let good = DiscoveredService::configured("good", config.unwrap());
        let problem = Problem::error("/Labels/Order", "bad_label", "`abc` is not a number");
        let bad = DiscoveredService::failed("bad", problem);
        Ok(Discovery::new(vec![good, bad]))
    }
}

/// Services that a provider keeps back are visible in the control plane.
#[tokio::test(start_paused = true)]
async fn services_that_a_provider_keeps_back_are_listed() {
    let provided = provide(Runner::new(OneOfTwo).start(), BridgeOptions::default());
    let sources = Sources::new().with_provided("cluster", provided);
    let (pipeline, snapshots) = served_of(sources, PipelineOptions::default()).await;
    assert_eq!(served(&snapshots, ResourceType::Cluster), ["shop"]);
    let status = Arc::clone(&pipeline.status().borrow());
    let [entry] = &status.not_as_wanted()[..] else {
        panic!("one: {:?}", status.not_as_wanted());
    };
    assert_eq!(entry.owner, "cluster/bad");
    assert!(!entry.serves_last_known_good);
    assert!(
        entry.reasons.join("; ").contains("`abc` is not a number"),
        "{entry:?}"
    );
    let found = status.findings();
    let codes: Vec<_> = found.iter().map(|it| (&*it.owner, &*it.code)).collect();
    assert_eq!(codes, [("cluster/bad", "not_served")], "{found:?}");
}

/// One of two services that want a domain gets it; the other one is listed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_domain_that_a_service_does_not_get_is_listed() {
    let consul = FakeConsul::new("sas");
    for name in ["j", "k"] {
        let wants = instance(name, 80).with_tag("domain-shop.example");
        consul.register("sas", "node", wants);
    }
    let sources = Sources::new().with_consul(consul.client(), ConsulSourceOptions::default());
    let (pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    let mut status = pipeline.status();
    let is_told = |status: &Arc<PipelineStatus>| !status.warnings.is_empty();
    let told = timeout(Duration::from_secs(60), status.wait_for(is_told));
    let status_then = Arc::clone(&told.await.unwrap().unwrap());
    let found = status_then.findings();
    // One for the domain, and one for it with the port.
    let taken = found.iter().find(|it| it.code == "domain_taken");
    let taken = taken.unwrap_or_else(|| panic!("one is taken: {found:?}"));
    assert!(taken.message.contains("shop.example"), "{taken:?}");
    let owner = &taken.owner;
    let entries = status_then.not_as_wanted();
    let entry = entries.iter().find(|entry| entry.owner == *owner);
    let reasons = entry.map(|entry| entry.reasons.join("; "));
    assert!(
        reasons.is_some_and(|reasons| reasons.contains("domain_taken")),
        "{entries:?}"
    );
    // The one that has it leaves it.
    let (winner, loser) = if owner.ends_with("/k") {
        ("j", "k")
    } else {
        ("k", "j")
    };
    consul.register("sas", "node", instance(winner, 80));
    until(&mut snapshots, |snapshots| hosts(snapshots) == [loser]).await;
    let is_over = |status: &Arc<PipelineStatus>| status.findings().is_empty();
    let over = timeout(Duration::from_secs(60), status.wait_for(is_over));
    over.await.unwrap().unwrap();
}
