//! Tests of listeners that restrict senders.

use std::time::Duration;

use discovery_core::{ConfigProvider, ProviderState};
use prost::Message;
use tokio::time::sleep;
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Listener as Lds};
use xds_types::pb::envoy::config::listener::v3::{FilterChain, FilterChainMatch, Listener, filter};
use xds_types::pb::envoy::config::core::v3::CidrRange;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{HttpConnectionManager, Rds};
use xds_types::pb::google::protobuf::Any;
use xds_types::ResourceType;

use super::script::{Full, any, full, listener, listener_with, pair};
use super::written::resources;
use super::{ONE, serving, state, states};
use crate::{Mode, XdsOptions};

type Resource = (ResourceType, String, Any);

fn options() -> XdsOptions {
    XdsOptions::default().with_mode(Mode::StateOfTheWorld)
}

/// The same listener for some clients.
pub(super) fn guarded((kind, name, resource): Resource) -> Resource {
    let mut guarded = Listener::decode(&*resource.value).unwrap();
    guarded.filter_chains = (guarded.filter_chains.into_iter())
        .map(|chain| FilterChain {
            filter_chain_match: Some(FilterChainMatch {
                source_prefix_ranges: vec![CidrRange::default()],
                ..FilterChainMatch::default()
            }),
            ..chain
        })
        .collect();
    (kind, name, any(kind, &guarded))
}

/// Returns true if all routes respond with 503. Checks that this is reported to the operator.
pub(super) fn is_closed(state: &ProviderState) -> bool {
    let is_closed = state.config.as_ref().is_some_and(|config| {
        let mut routes = config.routes.values();
        !config.routes.is_empty() && routes.all(|route| route.cluster_id.is_none())
    });
    assert!(
        !is_closed || state.problems.has_errors(),
        "{}",
        state.problems
    );
    is_closed
}

async fn say(stream: &Full, nonce: &str, listeners: &[Resource]) {
    let mut all = resources(ONE);
    all.extend_from_slice(listeners);
    for (kind, number) in [
        (Cds, "1"),
        (Lds, "2"),
        (ResourceType::Route, "3"),
        (Eds, "4"),
    ] {
        let nonce = format!("{nonce}-{number}");
        stream.answer(full(kind, &nonce, &nonce, &all)).await;
    }
}

async fn rejection(stream: &mut Full) -> String {
    loop {
        if let Some(error) = stream.request().await.error_detail {
            return error.message;
        }
    }
}

/// `main` is requested by default, which must not open the routes that the listener restricts.
#[tokio::test(start_paused = true)]
async fn a_guarded_listener_closes_its_routes_from_the_start() {
    let (discoverer, mut script) = pair(options());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.full().await;
    say(&stream, "1", &[guarded(listener("http", "main"))]).await;
    let closed = state(&mut states, is_closed).await;
    let told = closed.problems.to_string();
    assert!(
        told.contains("the listener `http` restricts access"),
        "{told}"
    );
    let message = rejection(&mut stream).await;
    assert!(message.contains("source_prefix_ranges"), "{message}");

    // Without the guard it opens.
    say(&stream, "2", &[listener("http", "main")]).await;
    serving(&mut states, ONE).await;
}

/// The last known good state had no restriction.
#[tokio::test(start_paused = true)]
async fn a_guard_that_is_new_closes_what_was_open() {
    let (discoverer, mut script) = pair(options());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    say(&stream, "1", &[listener("http", "main")]).await;
    serving(&mut states, ONE).await;
    stream
        .answer(full(Lds, "5", "5", &[guarded(listener("http", "main"))]))
        .await;
    state(&mut states, is_closed).await;
    sleep(Duration::from_secs(60)).await;
    assert!(is_closed(&states.borrow()));
}

/// A second listener does not open a closed route configuration, since the proxy may not stand in its
/// place.
#[tokio::test(start_paused = true)]
async fn another_listener_does_not_open_what_one_guards() {
    let (discoverer, mut script) = pair(options());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    let open = listener("internal", "main");
    say(
        &stream,
        "1",
        &[guarded(listener("http", "main")), open.clone()],
    )
    .await;
    state(&mut states, is_closed).await;
    // A removed listener restricts nothing.
    stream.answer(full(Lds, "5", "5", &[open])).await;
    serving(&mut states, ONE).await;
}

/// Listeners are not requested, by the operator's choice.
#[tokio::test(start_paused = true)]
async fn without_listeners_routes_are_served_to_everybody() {
    let (discoverer, mut script) = pair(options().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    for (kind, nonce) in [(Cds, "1"), (ResourceType::Route, "2"), (Eds, "3")] {
        stream.answer(full(kind, nonce, "1", &resources(ONE))).await;
    }
    serving(&mut states, ONE).await;
}

#[tokio::test(start_paused = true)]
async fn routes_inside_a_guarded_listener_are_closed() {
    let (discoverer, mut script) = pair(options().with_route_configs(Vec::new()));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    let all = resources(ONE);
    let (.., routes) = all
        .iter()
        .find(|(kind, ..)| *kind == ResourceType::Route)
        .unwrap();
    let routes = RouteConfiguration::decode(&*routes.value).unwrap();
    let inside = listener_with("http", RouteSpecifier::RouteConfig(routes));
    say(&stream, "1", std::slice::from_ref(&inside)).await;
    serving(&mut states, ONE).await;
    say(&stream, "2", &[guarded(inside.clone())]).await;
    state(&mut states, is_closed).await;
    say(&stream, "3", &[inside]).await;
    serving(&mut states, ONE).await;
}

/// A listener whose Envoy merges slashes before it chooses a route.
pub(super) fn merging(name: &'static str, routes: RouteSpecifier) -> Resource {
    let (kind, name, resource) = listener_with(name, routes);
    let mut listener = Listener::decode(&*resource.value).unwrap();
    for filter in &mut listener.filter_chains[0].filters {
        let Some(filter::ConfigType::TypedConfig(config)) = &mut filter.config_type else {
            unreachable!("it has a configuration")
        };
        let mut manager = HttpConnectionManager::decode(&*config.value).unwrap();
        manager.merge_slashes = true;
        config.value = manager.encode_to_vec();
    }
    (kind, name, any(kind, &listener))
}

/// Returns true if there are routes, and all of them reject paths that programs read in different ways.
pub(super) fn are_strict(state: &ProviderState) -> bool {
    state.config.as_ref().is_some_and(|config| {
        let mut routes = config.routes.values();
        !config.routes.is_empty() && routes.all(|route| route.strict_paths == Some(true))
    })
}

/// The listener decides, and its routes are in a resource of their own or inside of it.
#[tokio::test(start_paused = true)]
async fn routes_of_a_listener_that_merges_slashes_reject_ambiguous_paths() {
    let (discoverer, mut script) = pair(options().with_route_configs(Vec::new()));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    say(&stream, "1", &[listener("http", "main")]).await;
    serving(&mut states, ONE).await;
    assert!(!are_strict(&states.borrow()));
    let named = RouteSpecifier::Rds(Rds {
        route_config_name: "main".into(),
        ..Rds::default()
    });
    let all = resources(ONE);
    let (.., inside) = all
        .iter()
        .find(|(kind, ..)| *kind == ResourceType::Route)
        .unwrap();
    let inside = RouteConfiguration::decode(&*inside.value).unwrap();
    for (nonce, routes) in [("2", named), ("3", RouteSpecifier::RouteConfig(inside))] {
        say(&stream, nonce, &[merging("http", routes)]).await;
        let strict = state(&mut states, are_strict).await;
        assert!(!strict.problems.has_errors(), "{}", strict.problems);
        assert!(strict.problems.to_string().contains("merge_slashes"));
        say(
            &stream,
            &format!("{nonce}-open"),
            &[listener("http", "main")],
        )
        .await;
        serving(&mut states, ONE).await;
    }
}

/// The configuration restored from disk is closed too.
#[tokio::test(start_paused = true)]
async fn a_restart_opens_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("xds.json");
    let (discoverer, mut script) = pair(options().with_persist(Some(file.clone())));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    say(&stream, "1", &[guarded(listener("http", "main"))]).await;
    state(&mut states, is_closed).await;
    // The write causes no notification.
    let is_saved = || {
        (states.borrow().status.persistence.as_ref()).is_some_and(|kept| kept.last_saved.is_some())
    };
    for _ in 0..1000 {
        if is_saved() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert!(is_saved());
    drop((provider, script, stream));
    let (discoverer, script) = pair(options().with_persist(Some(file)));
    let provider = discoverer.runner().start();
    let mut states = provider.subscribe();
    let restored = state(&mut states, |state| state.config.is_some()).await;
    let config = restored.config.as_ref().unwrap();
    assert!(!config.routes.is_empty());
    assert!(
        config
            .routes
            .values()
            .all(|route| route.cluster_id.is_none())
    );
    drop(script);
}

/// The routes are the same for both, so that the stricter one decides. Neither passes what one of them would merge.
#[tokio::test(start_paused = true)]
async fn listeners_that_share_routes_and_differ_in_merging_slashes_both_reject_ambiguous_paths() {
    let (discoverer, mut script) = pair(options().with_route_configs(Vec::new()));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    let named = RouteSpecifier::Rds(Rds {
        route_config_name: "main".into(),
        ..Rds::default()
    });
    let strict = merging("strict", named);
    let open = listener("open", "main");
    say(&stream, "1", std::slice::from_ref(&open)).await;
    serving(&mut states, ONE).await;
    for (nonce, both) in [
        ("2", [open.clone(), strict.clone()]),
        ("3", [strict, open.clone()]),
    ] {
        say(&stream, nonce, &both).await;
        let shared = state(&mut states, are_strict).await;
        assert!(!shared.problems.has_errors(), "{}", shared.problems);
        assert!(shared.problems.to_string().contains("merge_slashes"));
        let alone = std::slice::from_ref(&open);
        say(&stream, &format!("{nonce}-alone"), alone).await;
        serving(&mut states, ONE).await;
        state(&mut states, |state| !are_strict(state)).await;
    }
}
