//! Routes that are in a listener itself.

use std::time::Duration;

use xds_types::pb::envoy::config::route::v3::route_match::GrpcRouteMatchOptions;
use xds_types::pb::envoy::config::route::v3::{Route, RouteConfiguration};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::ScopedRoutes;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use discovery_core::ProviderState;
use prost::Message;
use proxy_model::config::RouteConfig;
use tokio::time::{Instant, sleep};

use super::script::{Full, full, listener_with, pair};
use super::written::resources;
use super::{ONE, state, states};
use crate::{Mode, XdsOptions};
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Listener as Lds, Route as Rds};

/// The routes of [`ONE`], as another control plane would write them.
fn routes() -> RouteConfiguration {
    let all = resources(ONE);
    let (.., routes) = all.iter().find(|(kind, ..)| *kind == Rds).unwrap();
    let mut routes = RouteConfiguration::decode(&*routes.value).unwrap();
    for host in &mut routes.virtual_hosts {
        for route in &mut host.routes {
            route.metadata = None;
            // Those that are made of the request are nothing that it could honour.
            route.request_headers_to_add.clear();
        }
    }
    routes
}

/// Adds a route in front of all others, with a condition that no proxy of this project supports.
fn with_condition(mut routes: RouteConfiguration) -> RouteConfiguration {
    let host = &mut routes.virtual_hosts[0];
    let mut unknown = Route {
        name: "unknown".to_owned(),
        ..host.routes[0].clone()
    };
    let conditions = unknown.r#match.get_or_insert_default();
    conditions.grpc = Some(GrpcRouteMatchOptions::default());
    host.routes.insert(0, unknown);
    routes
}

async fn listen(stream: &Full, nonce: &str, routes: RouteSpecifier) {
    let listener = listener_with("http", routes);
    stream.answer(full(Lds, nonce, nonce, &[listener])).await;
}

fn all_lead_to_c(state: &ProviderState) -> bool {
    state.config.as_ref().is_some_and(|config| {
        let mut routes = config.routes.values();
        let is_c = |route: &RouteConfig| {
            route
                .cluster_id
                .as_ref()
                .is_some_and(|id| id.as_str() == "c")
        };
        !config.routes.is_empty() && routes.all(is_c)
    })
}

/// Returns the next NACK's message.
async fn rejection(stream: &mut Full) -> String {
    loop {
        if let Some(error) = stream.request().await.error_detail {
            return error.message;
        }
    }
}

/// An unknown condition reveals nothing about the requests that were served so far, independent of the
/// place of the routes.
#[tokio::test(start_paused = true)]
async fn a_virtual_host_stays_as_it_was_for_a_condition_that_is_not_known() {
    let options = XdsOptions::default().with_mode(Mode::StateOfTheWorld);
    let (discoverer, mut script) = pair(options);
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.full().await;
    let begun = Instant::now();
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Eds, "2")] {
        stream.answer(full(kind, nonce, "1", &one)).await;
    }
    listen(&stream, "3", RouteSpecifier::RouteConfig(routes())).await;
    state(&mut states, all_lead_to_c).await;
    // `main` is requested by default; if listeners have inline routes it is not waited for.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");

    let next = with_condition(routes());
    listen(&stream, "4", RouteSpecifier::RouteConfig(next)).await;
    let message = rejection(&mut stream).await;
    assert!(message.contains("grpc"), "{message}");
    sleep(Duration::from_secs(30)).await;
    let served = states.borrow().clone();
    assert!(all_lead_to_c(&served), "{:?}", served.config);
    assert!(served.problems.has_errors(), "{}", served.problems);

    // The client does not support routes by scope: the listener as a whole stays as it was.
    let scoped = RouteSpecifier::ScopedRoutes(ScopedRoutes::default());
    listen(&stream, "5", scoped).await;
    let message = rejection(&mut stream).await;
    assert!(message.contains("scoped_routes"), "{message}");
    sleep(Duration::from_secs(30)).await;
    assert!(all_lead_to_c(&states.borrow()));

    // What it can do it does.
    let mut changed = routes();
    changed.virtual_hosts[0].domains = vec!["other.example".to_owned()];
    listen(&stream, "6", RouteSpecifier::RouteConfig(changed)).await;
    state(&mut states, |state| {
        let config = state.config.as_ref().unwrap();
        let mut hosts = config.routes.values().map(|route| &route.r#match.hosts);
        hosts.any(|hosts| format!("{hosts:?}").contains("other.example"))
    })
    .await;
}
