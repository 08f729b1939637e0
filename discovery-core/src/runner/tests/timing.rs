//! Tests of the times of polls.

use tokio::time::Instant;

use super::*;
use crate::error::DiscoverError;

async fn seconds_until_call(source: &ScriptedDiscoverer, calls: usize) -> f64 {
    let begun = Instant::now();
    tokio::time::timeout(LONG, source.wait_for_calls(calls))
        .await
        .expect("the source is asked");
    begun.elapsed().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn cycles_come_on_a_jittered_interval() {
    let source = ScriptedDiscoverer::new("script");
    let _provider = Runner::new(source.clone()).options(options()).start();
    assert!(seconds_until_call(&source, 1).await < 0.01);
    let mut waits = Vec::new();
    for call in 2..100 {
        waits.push(seconds_until_call(&source, call).await);
    }
    assert!(
        waits.iter().all(|wait| (26.99..33.01).contains(wait)),
        "{waits:?}"
    );
    let spread =
        waits.iter().copied().fold(0.0, f64::max) - waits.iter().copied().fold(99.0, f64::min);
    assert!(spread > 4.0, "{spread}");
}

#[tokio::test(start_paused = true)]
async fn the_interval_counts_from_the_end_of_a_cycle() {
    let source = ScriptedDiscoverer::new("script");
    source.delay(Duration::from_secs(20));
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    let wait = seconds_until_call(&source, 2).await;
    assert!((46.9..53.1).contains(&wait), "{wait}");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_is_answered_at_once_but_for_the_debounce() {
    let source = ScriptedDiscoverer::new("script");
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    source.trigger();
    let wait = seconds_until_call(&source, 2).await;
    assert!((0.099..0.11).contains(&wait), "{wait}");
    // The interval starts again.
    let wait = seconds_until_call(&source, 3).await;
    assert!((26.9..33.1).contains(&wait), "{wait}");
}

#[tokio::test(start_paused = true)]
async fn cycles_keep_their_distance() {
    let source = ScriptedDiscoverer::new("script");
    let options = options().with_min_gap(Duration::from_secs(3));
    let _provider = Runner::new(source.clone()).options(options).start();
    source.wait_for_calls(1).await;
    source.trigger();
    let wait = seconds_until_call(&source, 2).await;
    assert!((2.99..3.01).contains(&wait), "{wait}");
}

/// F3: an event flood of 10,000 a second.
#[tokio::test(start_paused = true)]
async fn a_flood_of_triggers_is_folded() {
    let source = ScriptedDiscoverer::new("script");
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let mut before = 0;
    // Timers are in milliseconds, so ten in each.
    for _ in 0..10_000 {
        before = source.calls();
        for _ in 0..10 {
            source.trigger();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Never quiet for the debounce, so every cycle waited for the longest: one a second for ten seconds.
    let calls = source.calls() - 1;
    assert!((9..=11).contains(&calls), "{calls}");
    // The last trigger is handled, and only once.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(source.calls(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_during_a_cycle_leads_to_one_more() {
    let source = ScriptedDiscoverer::new("script");
    source.delay(Duration::from_secs(4));
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    source.trigger();
    let wait = seconds_until_call(&source, 2).await;
    assert!((3.0..3.2).contains(&wait), "{wait}");
    let wait = seconds_until_call(&source, 3).await;
    assert!((26.9..33.1).contains(&wait), "{wait}");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_before_a_cycle_is_answered_by_it() {
    let source = ScriptedDiscoverer::new("script");
    source.trigger();
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    let wait = seconds_until_call(&source, 2).await;
    assert!((26.9..33.1).contains(&wait), "{wait}");
}

#[tokio::test(start_paused = true)]
async fn errors_back_off_and_triggers_do_not_defeat_that() {
    let source = ScriptedDiscoverer::new("script");
    for _ in 0..12 {
        source.fail(DiscoverError::transient("down"));
    }
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    let mut limit = 0.5;
    for call in 2..=12 {
        source.trigger();
        let wait = seconds_until_call(&source, call).await;
        assert!((0.249..limit + 0.002).contains(&wait), "{call}: {wait}");
        limit = f64::min(limit * 2.0, 30.0);
    }
}

#[tokio::test(start_paused = true)]
async fn success_ends_the_back_off() {
    let source = ScriptedDiscoverer::new("script");
    for _ in 0..8 {
        source.fail(DiscoverError::transient("down"));
    }
    source.answer([]);
    source.fail(DiscoverError::transient("down"));
    let provider = Runner::new(source.clone()).options(options()).start();
    let state = after_cycles(&source, &provider, 9).await;
    assert_eq!(state.status.consecutive_failures, 0);
    let state = after_cycles(&source, &provider, 10).await;
    assert_eq!(state.status.consecutive_failures, 1);
    let wait = seconds_until_call(&source, 11).await;
    assert!(wait < 0.51, "{wait}");
}

#[tokio::test(start_paused = true)]
async fn a_source_may_ask_for_patience() {
    let source = ScriptedDiscoverer::new("script");
    source.fail(DiscoverError::transient("busy").with_retry_after(Duration::from_secs(45)));
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    let wait = seconds_until_call(&source, 2).await;
    assert!((44.9..45.1).contains(&wait), "{wait}");
}

/// One gateway that is told to be left alone for an hour must not keep a proxy without configuration for it.
#[tokio::test(start_paused = true)]
async fn a_source_that_asks_for_an_hour_is_asked_after_a_minute() {
    let source = ScriptedDiscoverer::new("script");
    source.fail(DiscoverError::transient("busy").with_retry_after(Duration::from_secs(3600)));
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    let wait = seconds_until_call(&source, 2).await;
    assert!((59.9..60.1).contains(&wait), "{wait}");
}

/// A source that always reports changes, without ever waiting.
struct Restless(ScriptedDiscoverer);

#[async_trait::async_trait]
impl Discoverer for Restless {
    fn name(&self) -> &str {
        "restless"
    }

    async fn discover(&self) -> Result<crate::Discovery, DiscoverError> {
        self.0.discover().await
    }

    async fn changed(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_source_that_always_says_changed_is_asked_in_moderation() {
    let source = ScriptedDiscoverer::new("script");
    let _provider = Runner::new(Restless(source.clone()))
        .options(options())
        .start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!((55..=62).contains(&source.calls()), "{}", source.calls());
}

#[tokio::test(start_paused = true)]
async fn no_options_make_a_busy_loop() {
    let source = ScriptedDiscoverer::new("script");
    let options = options()
        .with_min_gap(Duration::ZERO)
        .with_debounce(Duration::ZERO)
        .with_debounce_max(Duration::MAX)
        .with_interval(Duration::MAX);
    let _provider = Runner::new(Restless(source.clone()))
        .options(options)
        .start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!((90..=101).contains(&source.calls()), "{}", source.calls());
}

/// A source whose triggers panic.
struct Fragile(ScriptedDiscoverer);

#[async_trait::async_trait]
impl Discoverer for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    async fn discover(&self) -> Result<crate::Discovery, DiscoverError> {
        self.0.discover().await
    }

    async fn changed(&self) {
        self.0.changed().await;
        panic!("no more triggers");
    }
}

#[tokio::test(start_paused = true)]
async fn the_interval_survives_triggers_that_panic() {
    let source = ScriptedDiscoverer::new("script");
    let _provider = Runner::new(Fragile(source.clone()))
        .options(options())
        .start();
    source.wait_for_calls(1).await;
    source.trigger();
    let wait = seconds_until_call(&source, 2).await;
    assert!((26.9..33.1).contains(&wait), "{wait}");
}

#[tokio::test(start_paused = true)]
async fn no_wait_is_shorter_than_the_distance_between_cycles() {
    let gap = Duration::from_secs(3);
    // The interval, the back-off, and looking again at what is missing.
    for fails in [0, 20] {
        let source = ScriptedDiscoverer::new("script");
        for _ in 0..fails {
            source.fail(DiscoverError::transient("down"));
        }
        let options = options()
            .with_min_gap(gap)
            .with_interval(Duration::from_millis(10))
            .with_backoff(Duration::from_millis(10))
            .with_backoff_max(Duration::from_millis(10));
        let _provider = Runner::new(source.clone()).options(options).start();
        source.wait_for_calls(1).await;
        for call in 2..10 {
            let wait = seconds_until_call(&source, call).await;
            assert!((2.99..3.01).contains(&wait), "{wait}");
        }
    }
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    source.answer([]);
    let rule = ConfirmRemoval::default().with_recheck(Duration::from_millis(10));
    let options = options().with_min_gap(gap).with_confirm_removal(rule);
    let _provider = Runner::new(source.clone()).options(options).start();
    source.wait_for_calls(2).await;
    let wait = seconds_until_call(&source, 3).await;
    assert!((2.99..3.01).contains(&wait), "{wait}");
}

/// After many failures the back-off is long; the trigger ends it once.
#[tokio::test(start_paused = true)]
async fn a_trigger_is_heard_once_during_a_back_off() {
    for seed in 0..20 {
        let source = ScriptedDiscoverer::new("script");
        for _ in 0..20 {
            source.fail(DiscoverError::transient("down"));
        }
        let options = options()
            .with_seed(seed)
            .with_backoff_max(Duration::from_secs(3600));
        let _provider = Runner::new(source.clone()).options(options).start();
        source.wait_for_calls(14).await;
        source.trigger();
        let wait = seconds_until_call(&source, 15).await;
        assert!(wait < 0.61, "{wait}");
        // Once: it fails again, so the next word of it is not believed.
        source.trigger();
        let mut waits = 0.0;
        for call in 16..=20 {
            waits += seconds_until_call(&source, call).await;
            source.trigger();
        }
        assert!(waits > 60.0, "{waits}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_asked_for_patience_is_not_hurried_by_its_triggers() {
    let source = ScriptedDiscoverer::new("script");
    source.fail(DiscoverError::transient("busy").with_retry_after(Duration::from_secs(45)));
    let _provider = Runner::new(source.clone()).options(options()).start();
    source.wait_for_calls(1).await;
    source.trigger();
    let wait = seconds_until_call(&source, 2).await;
    assert!((44.9..45.1).contains(&wait), "{wait}");
}
