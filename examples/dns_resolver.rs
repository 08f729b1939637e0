//! cargo run --package examples --example dns_resolver
//!
//! A destination whose name has several addresses: the resolver creates a destination for each
//! address, and resolves the name again periodically. The look-up is replaced here, so that the
//! example needs no name server; the default is the system's resolver.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::resolver::{DnsResolver, Lookup};
use discovery_core::{Merge, MergedState, StaticProvider};
use examples::Failure;
use proxy_model::config::ProxyConfig;

/// A name with one address at first, and with three from the second look-up on.
#[derive(Default)]
struct Growing(AtomicUsize);

#[async_trait]
impl Lookup for Growing {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if host != "orders.internal" {
            return Err(io::ErrorKind::NotFound.into());
        }
        let count = if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            1
        } else {
            3
        };
        Ok((1..=count).map(|i| IpAddr::from([10, 0, 0, i])).collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let config = ProxyConfig::from_json(
        r#"{
            "Routes": { "orders": { "ClusterId": "orders", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "orders": { "Destinations": {
                "1": { "Address": "http://orders.internal:5000/" }
            } } }
        }"#,
    )?;
    let resolver =
        DnsResolver::with_lookup(Growing::default()).with_refresh(Duration::from_millis(200));
    let merged = Merge::new()
        .resolver(resolver)
        .provider(StaticProvider::new("code", config))
        .start();
    // A program passes these snapshots to its proxy:
    // `Proxy::builder().snapshots(merged.snapshots())`.
    let first = merged.ready().await;
    print("at first", &first);
    let mut snapshots = merged.snapshots();
    while addresses(&merged.state()).len() < 3 {
        snapshots.changed().await?;
    }
    print("later", &merged.state());
    Ok(())
}

fn addresses(state: &Arc<MergedState>) -> Vec<String> {
    let clusters = state.snapshot.clusters();
    let destinations = clusters.iter().flat_map(|cluster| cluster.destinations());
    destinations
        .map(|destination| destination.config().address.clone())
        .collect()
}

fn print(when: &str, state: &Arc<MergedState>) {
    println!("{when}: {}", addresses(state).join(", "));
}
