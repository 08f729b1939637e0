//! cargo run --package examples --example custom_labels
//!
//! A custom label dialect: services declare `expose: host/path`, and nothing else. A parser is a
//! pure function, so this example needs no network to show the results of valid and invalid labels.

use async_trait::async_trait;
use discovery_core::{
    DiscoverError, DiscoveredService, Discoverer, Discovery, LabelledService, LabelsParser, Parsed,
    Runner, ServiceOutcome,
};
use examples::Failure;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig, RouteMatch};
use proxy_model::{ClusterId, Problem, RouteId};

/// `expose: example.com/orders` routes that host and path to the service.
struct Expose;

impl LabelsParser for Expose {
    fn parse(&self, service: &str, described: &LabelledService) -> Parsed {
        let Some(expose) = described.labels.get("expose") else {
            return Parsed::not_enabled();
        };
        let Some((host, path)) = expose.split_once('/') else {
            let problem = Problem::error(
                "/expose",
                "invalid_expose",
                format!("`{expose}` has no path"),
            )
            .with_suggestion(format!("write `{expose}/`"));
            return Parsed::new(ProxyConfig::default()).with_problems(problem.into());
        };
        let cluster = ClusterId::from(service);
        let mut fragment = ProxyConfig::default();
        fragment.routes.insert(
            RouteId::from(service),
            RouteConfig {
                cluster_id: Some(cluster.clone()),
                r#match: RouteMatch {
                    hosts: Some(vec![host.to_owned()]),
                    path: Some(format!("/{path}/{{**rest}}").replace("//", "/")),
                    ..RouteMatch::default()
                },
                ..RouteConfig::default()
            },
        );
        fragment.clusters.insert(
            cluster,
            ClusterConfig {
                destinations: described.destinations.clone(),
                ..ClusterConfig::default()
            },
        );
        Parsed::new(fragment)
    }
}

/// A source with a valid service, an invalid one, and one that is not exposed.
struct Services;

#[async_trait]
impl Discoverer for Services {
    fn name(&self) -> &str {
        "services"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let destination = || DestinationConfig {
            address: "http://10.0.0.7:8080/".to_owned(),
            ..DestinationConfig::default()
        };
        let service = |name, label: &[(&str, &str)]| {
            DiscoveredService::labelled(name, label.iter().copied(), [("1", destination())])
        };
        Ok(Discovery::new(vec![
            service("orders", &[("expose", "shop.example/orders")]),
            service("catalog", &[("expose", "shop.example")]),
            service("database", &[]),
        ]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let found = Runner::new(Services).labels(Expose).run_once().await;
    let report = found.report.ok_or("the source did not answer")?;
    for service in &report.services {
        let what = match &service.outcome {
            ServiceOutcome::Accepted { routes, .. } => format!("accepted, routes {routes:?}"),
            ServiceOutcome::Quarantined { .. } => format!("quarantined: {}", service.problems),
            ServiceOutcome::NotEnabled => "does not ask to be served".to_owned(),
            other => format!("{other:?}"),
        };
        println!("{}: {what}", service.name);
    }
    let config = found
        .state
        .config
        .clone()
        .ok_or("there is no configuration")?;
    let route = &config.routes[&RouteId::from("orders")];
    assert_eq!(route.r#match.path.as_deref(), Some("/orders/{**rest}"));
    assert_eq!(
        config.routes.len(),
        1,
        "one bad service does not harm the others"
    );
    let catalog = report
        .services
        .iter()
        .find(|service| &*service.name == "catalog");
    assert_eq!(catalog.map(|service| service.problems.len()), Some(1));
    Ok(())
}
