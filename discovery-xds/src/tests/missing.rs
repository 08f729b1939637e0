//! Tests of resources that are requested and do not come, or are malformed.

use std::time::Duration;

use proxy_model::ClusterId;
use tokio::time::{Instant, sleep};

use super::script::{any, delta, full, listener, pair};
use super::written::{resources, resources_with_routes};
use super::{ONE, serving, state, states};
use crate::{Mode, XdsOptions};
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Listener as Lds, Route as Rds};
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

const SOON: Duration = Duration::from_millis(500);

fn full_options() -> XdsOptions {
    XdsOptions::default().with_mode(Mode::StateOfTheWorld)
}

/// `main` is requested by default, and does not exist in other control planes.
#[tokio::test(start_paused = true)]
async fn a_name_that_nobody_has_delays_nothing() {
    let (discoverer, mut script) = pair(full_options());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    let begun = Instant::now();
    let mut one = resources_with_routes("web", ONE);
    one.push(listener("http", "web"));
    for (kind, nonce) in [(Cds, "1"), (Lds, "2"), (Rds, "3"), (Eds, "4")] {
        stream.answer(full(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );

    let moved = ONE.replace("10.0.0.1", "10.0.0.2");
    stream.answer(full(Eds, "5", "2", &resources(&moved))).await;
    let changed = Instant::now();
    serving(&mut states, &moved).await;
    assert!(changed.elapsed() < SOON, "{:?}", changed.elapsed());
    drop(script);
}

/// One cluster's endpoints never come: it is waited for once.
#[tokio::test(start_paused = true)]
async fn endpoints_that_never_come_delay_one_change() {
    let two = ONE.replace(
        r#""Clusters":{"#,
        r#""Clusters":{"silent":{"Destinations":{"d":{"Address":"http://10.0.0.9/"}}},"#,
    );
    for mode in [Mode::StateOfTheWorld, Mode::Delta] {
        let options = XdsOptions::default().with_mode(mode).with_listeners(false);
        let (discoverer, mut script) = pair(options);
        let provider = discoverer.runner().start();
        let mut states = states(&provider);
        let begun = Instant::now();
        let all = resources(&two);
        let kinds = [(Cds, "1"), (Rds, "2"), (Eds, "3")];
        let silent = |found: &(_, String, _)| found.0 == Eds && found.1 == "silent";
        let said: Vec<_> = all.iter().filter(|found| !silent(found)).cloned().collect();
        let moved = two.replace("10.0.0.1", "10.0.0.2");
        let next = resources(&moved.replace(r#""silent""#, r#""other""#));
        let address = |state: &discovery_core::ProviderState, address: &str| {
            let config = state.config.as_ref();
            config.is_some_and(|config| {
                let cluster = &config.clusters[&ClusterId::from("c")];
                cluster
                    .destinations
                    .values()
                    .any(|d| d.address.contains(address))
            })
        };
        match mode {
            Mode::StateOfTheWorld => {
                let stream = script.full().await;
                for (kind, nonce) in kinds {
                    stream.answer(full(kind, nonce, "1", &said)).await;
                }
                state(&mut states, |state| address(state, "10.0.0.1")).await;
                assert!(begun.elapsed() >= Duration::from_secs(15));
                let changed = Instant::now();
                let of_c = next.iter().filter(|found| found.1 == "c").cloned();
                let of_c: Vec<_> = of_c.collect();
                stream.answer(full(Eds, "4", "2", &of_c)).await;
                state(&mut states, |state| address(state, "10.0.0.2")).await;
                assert!(changed.elapsed() < SOON, "{:?}", changed.elapsed());
            }
            Mode::Delta => {
                let stream = script.delta().await;
                for (kind, nonce) in kinds {
                    stream.answer(delta(kind, nonce, "1", &said)).await;
                }
                state(&mut states, |state| address(state, "10.0.0.1")).await;
                // A control plane that is silent when nothing has changed is available nevertheless.
                drop(stream);
                let stream = script.delta().await;
                sleep(Duration::from_secs(60)).await;
                assert_eq!(states.borrow().status.state.as_str(), "live");
                let changed = Instant::now();
                let of_c = next.iter().filter(|found| found.1 == "c").cloned();
                let of_c: Vec<_> = of_c.collect();
                stream.answer(delta(Eds, "4", "2", &of_c)).await;
                state(&mut states, |state| address(state, "10.0.0.2")).await;
                assert!(changed.elapsed() < SOON, "{:?}", changed.elapsed());
            }
        }
    }
}

/// A proxy without routes responds with 404 to every request, which is worse than not being ready.
#[tokio::test(start_paused = true)]
async fn nothing_is_served_before_there_are_routes() {
    for listens in [false, true] {
        let (discoverer, mut script) = pair(full_options().with_listeners(listens));
        let provider = discoverer.runner().start();
        let mut states = states(&provider);
        let stream = script.full().await;
        let mut one = resources(ONE);
        one.push(listener("http", "main"));
        for (kind, nonce) in [(Cds, "1"), (Lds, "2"), (Eds, "3")] {
            if listens || kind != Lds {
                stream.answer(full(kind, nonce, "1", &one)).await;
            }
        }
        sleep(Duration::from_secs(40)).await;
        assert!(states.borrow().config.is_none(), "listeners: {listens}");
        let came = Instant::now();
        stream.answer(full(Rds, "4", "1", &one)).await;
        serving(&mut states, ONE).await;
        // The runner retries with its own back-off.
        assert!(
            came.elapsed() < Duration::from_secs(11),
            "{:?}",
            came.elapsed()
        );
    }
}

/// A control plane can report that there are no routes.
#[tokio::test(start_paused = true)]
async fn routes_that_are_said_not_to_exist_are_not_waited_for() {
    let (discoverer, mut script) = pair(XdsOptions::default().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.delta().await;
    let clusters = resources(r#"{"Clusters":{"c":{}}}"#);
    for (kind, nonce) in [(Cds, "1"), (Eds, "2")] {
        stream.answer(delta(kind, nonce, "1", &clusters)).await;
    }
    let mut gone = delta(Rds, "3", "1", &[]);
    gone.removed_resources.push("main".into());
    stream.answer(gone).await;
    let begun = Instant::now();
    state(&mut states, |state| state.config.is_some()).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decoded_removes_nothing() {
    let (discoverer, mut script) = pair(full_options().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let mut stream = script.full().await;
    let two = ONE.replace(r#""Clusters":{"#, r#""Clusters":{"b":{},"#);
    let all = resources(&two);
    for (kind, nonce) in [(Cds, "1"), (Rds, "2"), (Eds, "3")] {
        stream.answer(full(kind, nonce, "1", &all)).await;
    }
    serving(&mut states, &two).await;

    let garbage = |change: fn(&mut xds_types::pb::google::protobuf::Any)| {
        let mut answer = full(Cds, "bad", "2", &all);
        answer.resources.iter_mut().skip(1).for_each(change);
        answer
    };
    for answer in [
        garbage(|resource| resource.value.truncate(2)),
        garbage(|resource| resource.type_url = Eds.type_url().into()),
    ] {
        stream.answer(answer).await;
        let rejection = loop {
            if let Some(rejection) = stream.request().await.error_detail {
                break rejection.message;
            }
        };
        assert!(rejection.contains("cannot be decoded"), "{rejection}");
        sleep(Duration::from_secs(30)).await;
        let served = states.borrow().config.clone().unwrap();
        assert_eq!(served.clusters.len(), 2);
    }
    // The next good response counts again.
    stream.answer(full(Cds, "4", "3", &resources(ONE))).await;
    serving(&mut states, ONE).await;
}

/// A control plane that has sent something invalid differs from one that has sent nothing.
#[tokio::test(start_paused = true)]
async fn a_rejection_is_told_while_there_is_nothing_to_serve() {
    let (discoverer, mut script) = pair(full_options().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.full().await;
    let one = resources(ONE);
    stream.answer(full(Cds, "1", "1", &one)).await;
    let rejected = RouteConfiguration {
        name: "main".to_owned(),
        vhost_header: "x-host".to_owned(),
        ..RouteConfiguration::default()
    };
    let rejected = [(Rds, "main".to_owned(), any(Rds, &rejected))];
    stream.answer(full(Rds, "2", "1", &rejected)).await;
    let failing = state(&mut states, |state| state.status.last_error.is_some()).await;
    let message = &failing.status.last_error.as_ref().unwrap().message;
    assert!(
        message.contains("no resource of the control plane can be served"),
        "{message}"
    );
    let pointers: Vec<_> = failing.problems.iter().map(|p| p.pointer.clone()).collect();
    assert_eq!(pointers, ["/route_configuration/main/vhost_header"]);
    assert!(failing.config.is_none());
    // Once corrected, it serves without problems.
    for (kind, nonce) in [(Rds, "3"), (Eds, "4")] {
        stream.answer(full(kind, nonce, "2", &one)).await;
    }
    let good = serving(&mut states, ONE).await;
    assert!(!good.problems.has_errors(), "{}", good.problems);
}
