//! cargo run --package examples --example narrow
//!
//! The stage between available and picked: a policy that sees all available destinations and the
//! client's address, leaves some out, and lets a built-in policy pick among the rest. Another policy
//! decides which destinations are available at all.

use std::net::IpAddr;
use std::sync::Arc;

use examples::{Failure, Started, get, start_service, wait_unless_once};
use proxy_model::compiled::Cluster;
use proxy_model::{ClusterId, DestinationId, RequestHead};
use proxy_runtime::Proxy;
use proxy_runtime::balance::{Candidates, LoadBalancer, RoundRobin};
use proxy_runtime::health::{AvailableDestinationsPolicy, Health};

/// Clients of this machine get the destinations with the metadata `Local`, others the rest.
struct Local;

impl LoadBalancer for Local {
    fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
        let is_local = head
            .client_address()
            .as_ref()
            .is_some_and(IpAddr::is_loopback);
        let is_for_local = |i| {
            candidates
                .metadata(i)
                .is_some_and(|all| all.contains_key("Local"))
        };
        candidates.pick_among(|&i| is_for_local(i) == is_local, &RoundRobin, head)
    }

    fn is_always_asked(&self) -> bool {
        true
    }
}

/// More unhealthy destinations than healthy ones are taken for a mistake of the checks.
struct Doubt;

impl AvailableDestinationsPolicy for Doubt {
    fn select(&self, _: &Cluster, health: &[Health], available: &mut [bool]) {
        let unhealthy = health.iter().filter(|it| **it == Health::Unhealthy);
        if unhealthy.count() * 2 > health.len() {
            available.fill(true);
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (a, b, c) = (
        start_service("a").await?,
        start_service("b").await?,
        start_service("c").await?,
    );
    let config = format!(
        r#"{{
            "Routes": {{ "all": {{ "ClusterId": "all", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "all": {{
                "LoadBalancingPolicy": "Local",
                "HealthCheck": {{ "AvailableDestinationsPolicy": "Doubt" }},
                "Destinations": {{
                    "a": {{ "Address": "{a}", "Metadata": {{ "Local": "yes" }} }},
                    "b": {{ "Address": "{b}", "Metadata": {{ "Local": "yes" }} }},
                    "c": {{ "Address": "{c}" }}
                }}
            }} }}
        }}"#
    );
    let builder = Proxy::builder()
        .balancer("Local", Arc::new(Local))
        .available_destinations_policy("Doubt", Arc::new(Doubt));
    let started = Started::new(builder, &config)?;
    let two = async || -> Result<String, Failure> {
        let first = get(started.address, "/").await?.text;
        Ok(first + &get(started.address, "/").await?.text)
    };
    let fail = |id| {
        started.proxy.set_health(
            &ClusterId::from("all"),
            &DestinationId::from(id),
            Health::Unhealthy,
        )
    };
    let all = two().await?;
    assert!(all.contains("a:") && all.contains("b:"), "{all}");
    fail("a");
    let one = two().await?;
    assert!(!one.contains("a:"), "{one}");
    fail("b");
    let doubted = two().await?;
    assert!(
        doubted.contains("a:") && doubted.contains("b:"),
        "{doubted}"
    );
    println!("never c; only b while a is unhealthy; both when too many are");
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
