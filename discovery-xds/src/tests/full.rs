//! The state of the world.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::script::{full, pair};
use super::written::resources;
use super::{ONE, serving, state, states};
use crate::{Mode, XdsOptions};
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Route as Rds};

fn options() -> XdsOptions {
    XdsOptions::default()
        .with_listeners(false)
        .with_mode(Mode::StateOfTheWorld)
}

#[tokio::test(start_paused = true)]
async fn versions_and_nonces_are_those_of_what_was_accepted() {
    let (discoverer, mut script) = pair(options());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.full().await;
    let first = stream.request().await;
    assert_eq!(
        (
            &*first.type_url,
            &*first.version_info,
            &*first.response_nonce
        ),
        (Cds.type_url(), "", "")
    );
    assert!(first.node.is_some() && first.resource_names.is_empty());
    assert_eq!(stream.request().await.resource_names, ["main"]);

    let one = resources(ONE);
    stream.answer(full(Cds, "a", "7", &one)).await;
    let ack = stream.request().await;
    assert_eq!(
        (&*ack.version_info, &*ack.response_nonce, ack.error_detail),
        ("7", "a", None)
    );
    assert_eq!(stream.request().await.resource_names, ["c"]);
    stream.answer(full(Rds, "b", "7", &one)).await;
    stream.answer(full(Eds, "c", "7", &one)).await;
    assert_eq!(stream.request().await.resource_names, ["main"]);
    assert_eq!(stream.request().await.resource_names, ["c"]);
    serving(&mut states, ONE).await;

    // A rejected response keeps the version in use.
    let mut bad = full(Rds, "d", "8", &[]);
    let mut routes = xds_types::pb::envoy::config::route::v3::RouteConfiguration {
        name: "main".into(),
        ..Default::default()
    };
    routes.vhds = Some(Default::default());
    bad.resources.push(super::script::any(Rds, &routes));
    stream.answer(bad).await;
    let nack = stream.request().await;
    assert_eq!((&*nack.version_info, &*nack.response_nonce), ("7", "d"));
    assert!(
        nack.error_detail
            .unwrap()
            .message
            .contains("/route_configuration/main/vhds")
    );
    let kept = state(&mut states, |state| !state.problems.is_empty()).await;
    assert_eq!(kept.config.as_ref().unwrap().routes.len(), 1);

    // A cluster that is not among all clusters no longer exists.
    stream.answer(full(Cds, "e", "9", &[])).await;
    let empty = state(&mut states, |state| {
        state
            .config
            .as_ref()
            .is_some_and(|config| config.clusters.is_empty())
    })
    .await;
    assert_eq!(empty.config.as_ref().unwrap().routes.len(), 1);
    assert_eq!(stream.request().await.version_info, "9");
    let none = stream.request().await;
    assert_eq!(
        (&*none.type_url, none.resource_names.len()),
        (Eds.type_url(), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_is_rejected_whole() {
    let (discoverer, mut script) = pair(options().with_max_resources(1));
    let provider = discoverer.runner().start();
    let mut stream = script.full().await;
    let two = resources(r#"{"Clusters":{"a":{},"b":{}}}"#);
    stream.answer(full(Cds, "a", "1", &two)).await;
    let rejected = loop {
        if let Some(rejected) = stream.request().await.error_detail {
            break rejected;
        }
    };
    assert!(
        rejected.message.contains("at most 1 are taken"),
        "{}",
        rejected.message
    );
    drop(provider);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_there_twice_and_what_is_no_resource_are_rejected() {
    let (discoverer, mut script) = pair(options());
    let provider = discoverer.runner().start();
    let mut stream = script.full().await;
    let (one, mut answer) = (
        resources(r#"{"Clusters":{"a":{}}}"#),
        full(Cds, "a", "1", &[]),
    );
    let cluster = one[0].2.clone();
    let mut broken = cluster.clone();
    broken.value.truncate(2);
    answer.resources = vec![cluster.clone(), cluster, broken];
    stream.answer(answer).await;
    let rejected = loop {
        if let Some(rejected) = stream.request().await.error_detail {
            break rejected;
        }
    };
    assert!(
        rejected.message.contains("`a` is there twice"),
        "{}",
        rejected.message
    );
    assert!(
        rejected.message.contains("cannot be decoded"),
        "{}",
        rejected.message
    );
    drop(provider);
}

/// Related changes are waited for, but not forever.
#[tokio::test(start_paused = true)]
async fn a_control_plane_that_never_pauses_is_obeyed_all_the_same() {
    let patience = Duration::from_secs(3);
    let (discoverer, mut script) = pair(options().with_fetch_timeout(patience));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.full().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "a"), (Rds, "b"), (Eds, "c")] {
        stream.answer(full(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;

    let begun = Instant::now();
    let talking = async {
        for number in 0_u32.. {
            let address = format!("10.0.{}.{}", 1 + number / 250, 1 + number % 250);
            let next = resources(&ONE.replace("10.0.0.1", &address));
            let version = number.to_string();
            stream.answer(full(Eds, &version, &version, &next)).await;
            stream.request().await;
            // Before what came last has settled.
            sleep(Duration::from_millis(10)).await;
        }
    };
    let is_news = |state: &discovery_core::ProviderState| {
        let text = format!("{:?}", state.config);
        !text.contains("10.0.0.1/")
    };
    assert!(!is_news(&states.borrow()));
    tokio::select! {
        () = talking => unreachable!("it never pauses"),
        _ = state(&mut states, is_news) => {}
    }
    assert!(begun.elapsed() < patience * 2, "{:?}", begun.elapsed());
}
