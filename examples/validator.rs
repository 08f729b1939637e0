//! cargo run --package examples --example validator
//!
//! A custom rule for configurations: services may only have paths below `/api`. The service that
//! violates it is left out with the reason, and the other one is served.

use async_trait::async_trait;
use discovery_core::{
    Candidate, ConfigValidator, DiscoverError, DiscoveredService, Discoverer, Discovery, Runner,
};
use examples::Failure;
use proxy_model::config::DestinationConfig;
use proxy_model::{Problem, Problems, pointer_to};

struct BelowApi;

#[async_trait]
impl ConfigValidator for BelowApi {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let mut problems = Problems::new();
        for (id, route) in &candidate.config.routes {
            let path = route.r#match.path.as_deref().unwrap_or_default();
            if !path.starts_with("/api/") {
                let pointer = pointer_to(&pointer_to("/Routes", id.as_str()), "Match");
                let message = format!("`{path}` is not below /api");
                problems.push(
                    Problem::error(pointer, "not_below_api", message)
                        .with_suggestion(format!("write `/api{path}`")),
                );
            }
        }
        problems
    }
}

/// A source with two services.
struct Services;

#[async_trait]
impl Discoverer for Services {
    fn name(&self) -> &str {
        "services"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let service = |name: &str, path: &str| {
            let labels = [("proxy.enable", "true"), ("proxy.routes.main.path", path)];
            let destination = DestinationConfig {
                address: "http://10.0.0.7:8080/".to_owned(),
                ..DestinationConfig::default()
            };
            DiscoveredService::labelled(name, labels, [("1", destination)])
        };
        Ok(Discovery::new(vec![
            service("orders", "/api/orders/{**rest}"),
            service("debug", "/debug/{**rest}"),
        ]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let found = Runner::new(Services).validator(BelowApi).run_once().await;
    let report = found.report.ok_or("the source did not answer")?;
    for service in &report.services {
        match service.problems.len() {
            0 => println!("{}: accepted", service.name),
            _ => println!("{}: {}", service.name, service.problems),
        }
    }
    let config = found.state.config.clone().ok_or("nothing is served")?;
    assert_eq!(config.routes.len(), 1);
    Ok(())
}
