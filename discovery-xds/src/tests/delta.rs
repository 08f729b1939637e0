//! Tests of the delta variant.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use xds_types::pb::envoy::config::cluster::v3::Cluster;

use super::script::{any, delta, listener, pair};
use super::written::resources;
use super::{ONE, serving, state, states};
use crate::XdsOptions;
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Listener as Lds, Route as Rds_};

#[tokio::test(start_paused = true)]
async fn clusters_lead_to_endpoints_and_everything_is_acknowledged() {
    let options = XdsOptions::default()
        .with_listeners(false)
        .with_node_id("p1".into())
        .with_node_cluster("edge".into());
    let (discoverer, mut script) = pair(options);
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.delta().await;

    let clusters = stream.request().await;
    assert_eq!(clusters.type_url, Cds.type_url());
    let node = clusters.node.unwrap();
    assert_eq!((&*node.id, &*node.cluster), ("p1", "edge"));
    assert!(clusters.resource_names_subscribe.is_empty(), "all of them");
    let routes = stream.request().await;
    assert_eq!((&*routes.type_url, routes.node), (Rds_.type_url(), None));
    assert_eq!(routes.resource_names_subscribe, ["main"]);

    let one = resources(ONE);
    stream.answer(delta(Cds, "n1", "1", &one)).await;
    let ack = stream.request().await;
    assert_eq!(
        (&*ack.type_url, &*ack.response_nonce, ack.error_detail),
        (Cds.type_url(), "n1", None)
    );
    let endpoints = stream.request().await;
    assert_eq!(
        (&*endpoints.type_url, &*endpoints.response_nonce),
        (Eds.type_url(), "")
    );
    assert_eq!(endpoints.resource_names_subscribe, ["c"]);
    stream.answer(delta(Rds_, "n2", "1", &one)).await;
    assert_eq!(stream.request().await.response_nonce, "n2");
    assert!(stream.is_quiet().await);
    assert!(
        states.borrow().config.is_none(),
        "the endpoints are missing"
    );
    stream.answer(delta(Eds, "n3", "1", &one)).await;
    assert_eq!(stream.request().await.response_nonce, "n3");
    let live = serving(&mut states, ONE).await;
    assert_eq!(live.status.state.as_str(), "live");

    // One cluster goes, another one comes.
    let two = ONE.replace("\"c\"", "\"other\"");
    let next = resources(&two);
    let mut gone = delta(Cds, "n4", "2", &next);
    gone.removed_resources.push("c".into());
    stream.answer(gone).await;
    assert_eq!(stream.request().await.response_nonce, "n4");
    let endpoints = stream.request().await;
    assert_eq!(endpoints.resource_names_subscribe, ["other"]);
    assert_eq!(endpoints.resource_names_unsubscribe, ["c"]);
    stream.answer(delta(Eds, "n5", "2", &next)).await;
    stream.answer(delta(Rds_, "n6", "2", &next)).await;
    serving(&mut states, &two).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_honoured_is_rejected_by_name_and_its_last_form_serves() {
    let (discoverer, mut script) = pair(XdsOptions::default().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.delta().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Rds_, "2"), (Eds, "3")] {
        stream.answer(delta(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;

    let bad = Cluster {
        name: "c".into(),
        filters: vec![Default::default()],
        ..Cluster::default()
    };
    let good = resources(r#"{"Clusters":{"more":{}}}"#);
    let mut answer = delta(Cds, "bad", "2", &good);
    answer
        .resources
        .push(xds_types::pb::envoy::service::discovery::v3::Resource {
            name: "c".into(),
            version: "2".into(),
            resource: Some(any(Cds, &bad)),
            ..Default::default()
        });
    stream.answer(answer).await;
    let rejection = loop {
        let request = stream.request().await;
        if request.response_nonce == "bad" {
            break request.error_detail.unwrap();
        }
    };
    assert!(
        rejection.message.contains("/cluster/c/filters"),
        "{}",
        rejection.message
    );
    // The other one of the same response is accepted.
    let served = state(&mut states, |state| {
        state
            .config
            .as_ref()
            .is_some_and(|config| config.clusters.len() == 2)
    })
    .await;
    let kept = &served.config.as_ref().unwrap().clusters[&proxy_model::ClusterId::from("c")];
    assert_eq!(kept.destinations.len(), 1, "the last known good form");
    assert!(
        served
            .problems
            .iter()
            .any(|problem| problem.pointer.contains("/cluster/c/filters")),
        "{}",
        served.problems
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_reconnect_only_what_differs_is_asked_for() {
    let (discoverer, mut script) = pair(XdsOptions::default().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.delta().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Rds_, "2"), (Eds, "3")] {
        stream.answer(delta(kind, nonce, "v1", &one)).await;
    }
    serving(&mut states, ONE).await;
    drop(stream);
    let lost = state(&mut states, |state| {
        state.status.state.as_str() == "failing"
    })
    .await;
    assert!(lost.config.is_some(), "it serves on");
    assert!(
        lost.status
            .last_error
            .as_ref()
            .unwrap()
            .message
            .contains("the control plane is lost")
    );

    let mut again = script.delta().await;
    let known = |version: &str, name: &str| HashMap::from([(name.to_owned(), version.to_owned())]);
    let clusters = again.request().await;
    assert_eq!(
        (clusters.node.is_some(), clusters.initial_resource_versions),
        (true, known("v1", "c"))
    );
    let endpoints = again.request().await;
    assert_eq!(endpoints.resource_names_subscribe, ["c"]);
    assert_eq!(endpoints.initial_resource_versions, known("v1", "c"));
    assert_eq!(
        again.request().await.initial_resource_versions,
        known("v1", "main")
    );
    // Nothing differs, so nothing is sent; only the stream shows that all is well.
    let live = state(&mut states, |state| state.status.state.as_str() == "live").await;
    assert_eq!(live.config, lost.config);
}

#[tokio::test(start_paused = true)]
async fn what_never_comes_is_not_waited_for_for_ever() {
    let options = XdsOptions::default()
        .with_listeners(false)
        .with_fetch_timeout(Duration::from_secs(7));
    let (discoverer, mut script) = pair(options);
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.delta().await;
    let one = resources(ONE);
    stream.answer(delta(Cds, "1", "1", &one)).await;
    stream.answer(delta(Rds_, "2", "1", &one)).await;
    let begun = Instant::now();
    let served = state(&mut states, |state| state.config.is_some()).await;
    let waited = begun.elapsed();
    assert!(
        (Duration::from_secs(7)..Duration::from_secs(8)).contains(&waited),
        "{waited:?}"
    );
    assert!(
        served.config.as_ref().unwrap().clusters[0]
            .destinations
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn listeners_lead_to_routes() {
    let (discoverer, mut script) = pair(XdsOptions::default().with_route_configs(Vec::new()));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.delta().await;
    let kinds = [
        stream.request().await.type_url,
        stream.request().await.type_url,
    ];
    assert_eq!(kinds, [Cds.type_url(), Lds.type_url()]);
    let mut all = resources(ONE);
    all.push(listener("http", "main"));
    stream.answer(delta(Lds, "1", "1", &all)).await;
    assert_eq!(stream.request().await.response_nonce, "1");
    let routes = stream.request().await;
    assert_eq!(
        (&*routes.type_url, &routes.resource_names_subscribe[..]),
        (Rds_.type_url(), &["main".to_owned()][..])
    );
    for (kind, nonce) in [(Cds, "2"), (Rds_, "3"), (Eds, "4")] {
        stream.answer(delta(kind, nonce, "1", &all)).await;
    }
    serving(&mut states, ONE).await;
}

#[tokio::test(start_paused = true)]
async fn answers_do_not_add_up_to_more_than_is_taken() {
    let options = XdsOptions::default()
        .with_listeners(false)
        .with_max_resources(1);
    let (discoverer, mut script) = pair(options);
    let provider = discoverer.runner().start();
    let mut stream = script.delta().await;
    for (name, nonce) in [("a", "1"), ("a", "2"), ("b", "3")] {
        let json = format!(r#"{{"Clusters":{{"{name}":{{}}}}}}"#);
        stream
            .answer(delta(Cds, nonce, nonce, &resources(&json)))
            .await;
    }
    let rejected = loop {
        let request = stream.request().await;
        if let Some(rejected) = request.error_detail {
            break (request.response_nonce, rejected.message);
        }
    };
    assert_eq!(rejected.0, "3");
    assert!(rejected.1.contains("`b` is one too many"), "{}", rejected.1);
    drop(provider);
}
