//! cargo run --package examples --example cluster_changes
//!
//! Changes of clusters, for a program that keeps something for each: here a line that it prints.

use std::sync::Arc;

use examples::{Failure, wait_unless_once};
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::{ClusterChange, Proxy};

fn with_clusters(clusters: &str) -> Result<Arc<Snapshot>, Failure> {
    let config = ProxyConfig::from_json(&format!(r#"{{ "Clusters": {{ {clusters} }} }}"#))?;
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;
    Ok(Arc::new(snapshot))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let first = with_clusters(r#""orders": {}, "carts": {}"#)?;
    let (proxy, driver) = Proxy::builder().snapshot(first).build()?;
    tokio::spawn(driver);
    let mut changes = proxy.cluster_changes();
    println!("{:?}", changes.next().await);
    let address = r#"{ "Destinations": { "1": { "Address": "http://10.0.0.7/" } } }"#;
    proxy.publish(with_clusters(&format!(
        r#""orders": {address}, "users": {{}}"#
    ))?)?;
    let now = changes.next().await;
    println!("{now:?}");
    assert_eq!(
        now,
        [
            ClusterChange::Removed("carts".into()),
            ClusterChange::Changed("orders".into()),
            ClusterChange::Added("users".into()),
        ]
    );
    wait_unless_once().await
}
