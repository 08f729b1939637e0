//! Tests of validators: each service is validated on its own.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use proxy_model::{Problem, Problems};

use super::*;
use crate::error::DiscoverError;
use crate::validator::{Candidate, Scope};

fn service_of<'a>(candidate: &Candidate<'a>) -> &'a str {
    match candidate.scope {
        Scope::Service { service, .. } => service,
        Scope::Merged => "",
    }
}

/// Never returns for services whose name begins with `hung`.
struct HungAbout;

#[async_trait]
impl ConfigValidator for HungAbout {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        if service_of(candidate).starts_with("hung") {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        Problems::new()
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_validator_hangs_harms_no_other() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([
        service("hung", "http://h"),
        service("later", "http://l"),
        service("zoo", "http://z"),
    ]);
    let provider = Runner::new(source.clone())
        .options(options())
        .validator(HungAbout)
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["later=http://l", "zoo=http://z"]);
    assert_eq!(quarantined(&state), ["hung"]);
}

/// More services hang than a cycle can validate. Those that were not reached are validated first in the
/// next cycle.
#[tokio::test(start_paused = true)]
async fn services_that_were_not_reached_come_first_in_the_next_cycle() {
    let source = ScriptedDiscoverer::new("script");
    let hung = (0..200).map(|n| service(&format!("hung{n}"), "http://h"));
    source.answer(hung.chain([service("zoo", "http://z")]));
    let provider = Runner::new(source.clone())
        .options(options())
        .validator(HungAbout)
        .start();
    let begun = Instant::now();
    let state = after_cycles(&source, &provider, 1).await;
    assert!(begun.elapsed() <= Duration::from_secs(41));
    assert!(serving(&state).is_empty());
    let state = after_cycles(&source, &provider, 4).await;
    assert_eq!(serving(&state), ["zoo=http://z"]);
    assert_eq!(quarantined(&state).len(), 200);
}

/// Forty services whose validators may hang, and `zoo`.
fn forty_and_zoo(order: &str, address: &str) -> Vec<DiscoveredService> {
    let names = (0..40).map(|n| format!("hung{n:02}"));
    let labelled = |name: String| {
        let labels = [
            ("proxy.enable".to_owned(), "true".to_owned()),
            ("proxy.routes.main.path".to_owned(), format!("/{name}")),
            ("proxy.routes.main.order".to_owned(), order.to_owned()),
        ];
        let destination = DestinationConfig {
            address: address.to_owned(),
            ..Default::default()
        };
        DiscoveredService::labelled(name, labels, [("d", destination)])
    };
    names.chain(["zoo".to_owned()]).map(labelled).collect()
}

/// Services that waited for validation and are valid by then need none: the source is polled at its
/// interval again.
#[tokio::test(start_paused = true)]
async fn services_that_are_right_again_wait_for_no_turn() {
    let hangs = Hangs::default();
    let source = ScriptedDiscoverer::new("script");
    source.answer(forty_and_zoo("1", "http://old"));
    let provider = Runner::new(source.clone())
        .options(options())
        .validator(hangs.clone())
        .start();
    after_cycles(&source, &provider, 1).await;
    hangs.0.store(true, Ordering::Relaxed);
    source.answer(forty_and_zoo("abc", "http://new"));
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(quarantined(&state).len(), 41);

    hangs.0.store(false, Ordering::Relaxed);
    source.answer(forty_and_zoo("1", "http://newer"));
    let begun = Instant::now();
    while !quarantined(&provider.state()).is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    let before = provider.state().status.cycles;
    tokio::time::sleep(10 * options().interval).await;
    let cycles = provider.state().status.cycles - before;
    assert!(cycles <= 11, "{cycles} cycles in ten intervals");
}

/// Sixteen services whose validators hang about their new addresses, and one behind them: it comes to its own address.
#[tokio::test(start_paused = true)]
async fn hanging_validators_keep_no_other_quarantined_service_at_old_addresses() {
    let hangs = Hangs::default();
    let source = ScriptedDiscoverer::new("script");
    source.answer(forty_and_zoo("1", "http://old"));
    let provider = Runner::new(source.clone())
        .options(options())
        .validator(hangs.clone())
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state).len(), 41);

    hangs.0.store(true, Ordering::Relaxed);
    source.answer(forty_and_zoo("abc", "http://new"));
    let begun = Instant::now();
    let mut state = after_cycles(&source, &provider, 2).await;
    let moved = begun.elapsed();
    while !serving(&state).contains(&"zoo=http://new".to_owned()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        state = provider.state();
        assert!(begun.elapsed() < moved + Duration::from_secs(40), "starved");
    }
    assert_eq!(quarantined(&state).len(), 41);
    // Behind 40 that hang it is among the third sixteen: two cycles of 10 s and their gaps.
    assert!(
        begun.elapsed() < moved + Duration::from_secs(25),
        "{:?}",
        begun.elapsed() - moved
    );
    // It stays there, and moves again in the next cycle: those that hung come after it.
    let cycles = state.status.cycles;
    source.answer(forty_and_zoo("abc", "http://newer"));
    let state = after_cycles(&source, &provider, cycles + 1).await;
    assert!(serving(&state).contains(&"zoo=http://newer".to_owned()));
}

/// Like [`HungAbout`], but only while the flag is set.
#[derive(Clone, Default)]
struct Hangs(Arc<AtomicBool>);

#[async_trait]
impl ConfigValidator for Hangs {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        match self.0.load(Ordering::Relaxed) {
            true => HungAbout.validate(candidate).await,
            false => Problems::new(),
        }
    }
}

/// Rejects everything while the flag is set.
#[derive(Clone, Default)]
struct Strict(Arc<AtomicBool>);

#[async_trait]
impl ConfigValidator for Strict {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let rejected = self.0.load(Ordering::Relaxed) && service_of(candidate) != "allowed";
        let problem = || Problem::error("", "refused", "not any more");
        rejected.then(problem).into_iter().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_is_validated_before_it_serves() {
    for (names, expected) in [
        (&["a", "allowed"][..], Some(&["allowed=http://x"][..])),
        (&["a", "b"][..], None),
        (&[][..], Some(&[][..])),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let options = options().with_persist(directory.path().join("kept"));
        let source = ScriptedDiscoverer::new("script");
        source.answer(names.iter().map(|name| service(name, "http://x")));
        let provider = Runner::new(source.clone()).options(options.clone()).start();
        source.wait_for_reports(1).await;
        drop(provider);

        let source = ScriptedDiscoverer::new("script");
        source.fail(DiscoverError::transient("down"));
        let validator = Strict::default();
        validator.0.store(true, Ordering::Relaxed);
        let provider = Runner::new(source.clone())
            .options(options)
            .validator(validator)
            .start();
        let state = after_cycles(&source, &provider, 1).await;
        let dropped = state
            .problems
            .iter()
            .filter(|p| p.code == "refused")
            .count();
        match expected {
            Some(expected) => {
                assert!(state.config.is_some(), "{names:?}");
                assert_eq!(serving(&state), expected);
                assert_eq!(dropped, names.len() - expected.len());
            }
            None => {
                // Nothing serves, which is not the same as an empty configuration: the proxy is not ready.
                assert!(state.config.is_none());
                assert_eq!(dropped, names.len());
                assert!(state.problems.iter().any(|p| p.code == "restored_nothing"));
            }
        }
    }
}
