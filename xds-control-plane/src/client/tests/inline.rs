//! Routes that are in a listener itself.

use std::time::Duration;

use envoy_types::pb::envoy::config::route::v3::route_match::GrpcRouteMatchOptions;
use envoy_types::pb::envoy::config::route::v3::{Route, RouteConfiguration};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::ScopedRoutes;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use prost::Message;
use tokio::time::sleep;

use super::script::{Full, full, listener_with, pair, resources};
use super::{ONE, serving, state, states};
use crate::client::{Mode, XdsOptions};
use crate::snapshot::ResourceType::{
    Cluster as Cds, Endpoint as Eds, Listener as Lds, Route as Rds,
};

/// The routes of [`ONE`].
fn routes() -> RouteConfiguration {
    let all = resources(ONE);
    let (.., routes) = all.iter().find(|(kind, ..)| *kind == Rds).unwrap();
    RouteConfiguration::decode(&*routes.value).unwrap()
}

/// A route in front of all others, with a condition that no proxy of this family knows.
fn with_condition(mut routes: RouteConfiguration) -> RouteConfiguration {
    let host = &mut routes.virtual_hosts[0];
    let mut unknown = Route {
        name: "unknown".to_owned(),
        metadata: None,
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

/// The next refusal.
async fn refusal(stream: &mut Full) -> String {
    loop {
        if let Some(error) = stream.request().await.error_detail {
            return error.message;
        }
    }
}

/// A condition that is not known says nothing of the requests that were served so far, wherever the routes are.
#[tokio::test(start_paused = true)]
async fn a_virtual_host_stays_as_it_was_for_a_condition_that_is_not_known() {
    let options = XdsOptions::default().with_mode(Mode::StateOfTheWorld);
    let (discoverer, mut script) = pair(options);
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.full().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Eds, "2")] {
        stream.answer(full(kind, nonce, "1", &one)).await;
    }
    listen(&stream, "3", RouteSpecifier::RouteConfig(routes())).await;
    serving(&mut states, ONE).await;

    let next = with_condition(routes());
    listen(&stream, "4", RouteSpecifier::RouteConfig(next)).await;
    let message = refusal(&mut stream).await;
    assert!(message.contains("grpc"), "{message}");
    sleep(Duration::from_secs(30)).await;
    let served = serving(&mut states, ONE).await;
    assert!(served.problems.has_errors(), "{}", served.problems);

    // Routes by scope are none that it could follow: the listener as a whole stays as it was.
    let scoped = RouteSpecifier::ScopedRoutes(ScopedRoutes::default());
    listen(&stream, "5", scoped).await;
    let message = refusal(&mut stream).await;
    assert!(message.contains("scoped_routes"), "{message}");
    sleep(Duration::from_secs(30)).await;
    serving(&mut states, ONE).await;

    // What it can do it does.
    let mut changed = routes();
    changed.virtual_hosts[0].domains = vec!["other.example".to_owned()];
    for route in &mut changed.virtual_hosts[0].routes {
        route.metadata = None;
    }
    listen(&stream, "6", RouteSpecifier::RouteConfig(changed)).await;
    state(&mut states, |state| {
        let config = state.config.as_ref().unwrap();
        let mut hosts = config.routes.values().map(|route| &route.r#match.hosts);
        hosts.any(|hosts| format!("{hosts:?}").contains("other.example"))
    })
    .await;
}
