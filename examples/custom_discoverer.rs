//! cargo run --package examples --example custom_discoverer
//!
//! A custom registry as a source: a text file with a line `name address` per instance. The
//! discoverer only returns the current services; polling, change detection and error handling are
//! the runner's job.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{
    DiscoverError, DiscoveredService, Discoverer, Discovery, Merge, Runner, RunnerOptions,
};
use examples::{Failure, Folder, get, start_service, wait_unless_once};
use indexmap::IndexMap;
use proxy_model::config::DestinationConfig;
use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, Server};

/// The services that a text file lists.
struct TextFile(PathBuf);

#[async_trait]
impl Discoverer for TextFile {
    fn name(&self) -> &str {
        "text-file"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let text = tokio::fs::read_to_string(&self.0).await.map_err(|error| {
            DiscoverError::transient("the list of services cannot be read").with_source(error)
        })?;
        let mut services: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for (name, address) in text.lines().filter_map(|line| line.split_once(' ')) {
            services.entry(name).or_default().push(address);
        }
        Ok(services
            .iter()
            .map(|(name, addresses)| service(name, addresses))
            .collect())
    }
}

/// Describes a service with labels, which the default dialect turns into a route and a cluster.
fn service(name: &str, addresses: &[&str]) -> DiscoveredService {
    let path = format!("/{name}/{{**rest}}");
    let labels = [("proxy.enable", "true"), ("proxy.routes.main.path", &path)];
    let destinations = addresses.iter().enumerate().map(|(i, address)| {
        let destination = DestinationConfig {
            address: (*address).to_owned(),
            ..DestinationConfig::default()
        };
        (format!("{name}-{i}"), destination)
    });
    DiscoveredService::labelled(name, labels, destinations)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = Folder::create("custom-discoverer")?;
    let list = folder.path().join("services.txt");
    let catalog = start_service("catalog").await?;
    std::fs::write(&list, format!("catalog {catalog}\n"))?;

    let options = RunnerOptions::default().with_interval(Duration::from_millis(200));
    let source = Runner::new(TextFile(list.clone())).options(options).start();
    let merged = Merge::new().provider(source).start();
    merged.ready().await;

    let (proxy, driver) = Proxy::builder().snapshots(merged.snapshots()).build()?;
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_listener(Listener::http("127.0.0.1:0".parse()?))
        .bind()?;
    let address = server.local_addrs()[0];
    let running = server.start()?;

    println!(
        "curl http://{address}/catalog/shoes    # edit {} to change what is served",
        list.display()
    );
    assert_eq!(
        get(address, "/catalog/shoes").await?.text,
        "catalog: GET /catalog/shoes\n"
    );
    assert_eq!(get(address, "/orders/17").await?.status, 404);

    println!("a line is added to the file: orders");
    let orders = start_service("orders").await?;
    let mut generations = proxy.generations();
    std::fs::write(&list, format!("catalog {catalog}\norders {orders}\n"))?;
    generations.changed().await?;
    assert_eq!(
        get(address, "/orders/17").await?.text,
        "orders: GET /orders/17\n"
    );

    println!("the file is lost: what was known goes on serving");
    std::fs::remove_file(&list)?;
    let failing = || Arc::clone(&merged.state()).problems.len() + failures(&merged);
    while failing() == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(get(address, "/orders/17").await?.status, 200);

    wait_unless_once().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Number of failures since the last successful poll.
fn failures(merged: &discovery_core::Merged) -> usize {
    let providers = merged.providers();
    providers
        .iter()
        .map(|provider| provider.status.consecutive_failures as usize)
        .sum()
}
