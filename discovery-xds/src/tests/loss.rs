//! Tests of control planes that are unavailable, or do not respond.

use std::time::Duration;

use discovery_core::DiscoverErrorKind;
use tokio::time::Instant;
use tonic::Status;

use super::script::{delta, full, pair};
use super::written::resources;
use super::{ONE, serving, state, states};
use crate::{Mode, XdsOptions};
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Route as Rds};

fn options() -> XdsOptions {
    XdsOptions::default().with_listeners(false)
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_that_never_answers_is_left() {
    let (discoverer, mut script) = pair(options().with_answer_timeout(Duration::from_secs(3)));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let begun = Instant::now();
    let _silent = script.delta().await;
    let failing = state(&mut states, |state| state.status.last_error.is_some()).await;
    let message = &failing.status.last_error.as_ref().unwrap().message;
    assert!(message.contains("no answer within 3s"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let _next = script.delta().await;
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_that_rejects_the_client_is_told_as_that_until_it_accepts() {
    for mode in [Mode::Delta, Mode::StateOfTheWorld] {
        rejected_until_accepted(mode).await;
    }
}

async fn rejected_until_accepted(mode: Mode) {
    let is_delta = mode == Mode::Delta;
    let (discoverer, mut script) = pair(options().with_mode(mode));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let begun = Instant::now();
    for (status, code, is_rejected) in [
        (Status::unavailable("later"), "unavailable", false),
        (Status::permission_denied("not you"), "permission", true),
        (Status::unauthenticated("who?"), "authentication", true),
        (Status::internal("oh"), "oh", false),
    ] {
        match is_delta {
            true => script.delta().await.end(status.clone()).await,
            false => script.full().await.end(status.clone()).await,
        }
        // The state stays `failing`, which notifies no receiver.
        let error = loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let error = provider.state().status.last_error.clone();
            match error.filter(|error| error.message.contains(status.message())) {
                Some(error) => break error,
                None => assert!(begun.elapsed() < Duration::from_secs(300)),
            }
        };
        let kind = match is_rejected {
            true => DiscoverErrorKind::Rejected,
            false => DiscoverErrorKind::Transient,
        };
        assert_eq!(error.kind, kind, "{}", error.message);
        assert!(error.message.contains(code), "{}", error.message);
    }
    // The end of the rejection is noticed at the next stream.
    let begun = Instant::now();
    let one = resources(ONE);
    let answers = [(Cds, "1"), (Rds, "2"), (Eds, "3")];
    match is_delta {
        true => {
            let stream = script.delta().await;
            for (kind, nonce) in answers {
                stream.answer(delta(kind, nonce, "1", &one)).await;
            }
            serving(&mut states, ONE).await;
        }
        false => {
            let stream = script.full().await;
            for (kind, nonce) in answers {
                stream.answer(full(kind, nonce, "1", &one)).await;
            }
            serving(&mut states, ONE).await;
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn attempts_come_further_and_further_apart() {
    let backoff = (Duration::from_secs(1), Duration::from_secs(8));
    let (discoverer, mut script) = pair(options().with_backoff(backoff));
    let provider = discoverer.runner().start();
    let mut waits = Vec::new();
    drop(script.delta().await);
    for _ in 0..5 {
        let lost = Instant::now();
        drop(script.delta().await);
        waits.push(lost.elapsed().as_secs_f64());
    }
    for (wait, longest) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 8.0]) {
        assert!((longest * 0.49..longest + 0.1).contains(wait), "{waits:?}");
    }
    drop(provider);
}

#[tokio::test(start_paused = true)]
async fn the_age_of_what_serves_shows_since_when_nobody_confirmed_it() {
    let (discoverer, mut script) = pair(options());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.delta().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Rds, "2"), (Eds, "3")] {
        stream.answer(delta(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;
    let age = || states.borrow().status.last_ok.unwrap().age();
    // While the stream stands it is confirmed, however long nothing changes.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(age() < Duration::from_secs(30), "{:?}", age());
    drop(stream);
    drop(script);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(age() > Duration::from_secs(560), "{:?}", age());
    let state = states.borrow().clone();
    assert!(state.config.is_some() && state.status.state.is_stale());
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_a_control_plane_serves_what_was_kept() {
    let directory = tempfile::tempdir().unwrap();
    let file = Some(directory.path().join("xds.json"));
    let (discoverer, mut script) = pair(options().with_persist(file.clone()));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let stream = script.delta().await;
    let one = resources(ONE);
    for (kind, nonce) in [(Cds, "1"), (Rds, "2"), (Eds, "3")] {
        stream.answer(delta(kind, nonce, "1", &one)).await;
    }
    serving(&mut states, ONE).await;
    // The write causes no notification.
    let is_saved = || {
        (states.borrow().status.persistence.as_ref()).is_some_and(|kept| kept.last_saved.is_some())
    };
    for _ in 0..1000 {
        if is_saved() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_saved());
    drop((provider, stream, script));

    let (discoverer, script) = pair(options().with_persist(file));
    drop(script);
    let provider = discoverer.runner().start();
    let mut states = super::states(&provider);
    let restored = serving(&mut states, ONE).await;
    assert!(restored.status.state.is_stale());
}
