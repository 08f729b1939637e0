//! Tests of log messages, and of dropping a runner at any point.

use std::fmt::Write;
use std::future::poll_fn;
use std::task::Poll;

use parking_lot::Mutex;
use proptest::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::discovery::Discovery;
use crate::error::{DiscoverError, DiscoverErrorKind};
use crate::timestamp::Timestamp;

/// Keeps the messages of the warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "discovery::runner" && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Waits for tests on other threads. One that reaches an event just before a subscriber exists registers
/// the event as unwanted, and may be about to do so only now. After a moment every such registration is
/// over, and creating a subscriber evaluates all of them again.
fn settle_callsites() {
    std::thread::park_timeout(Duration::from_millis(100));
    drop(tracing::Dispatch::new(Warnings::default()));
}

#[tokio::test(start_paused = true)]
async fn a_warning_is_logged_when_a_state_begins_and_not_every_cycle() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    settle_callsites();
    let source = ScriptedDiscoverer::new("script");
    for _ in 0..2 {
        for _ in 0..5 {
            source.answer([service("a", "http://a"), broken("b")]);
        }
        for _ in 0..5 {
            source.fail(DiscoverError::transient("down"));
        }
    }
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 20).await;
    let away = "the source cannot be read, its last known good configuration serves";
    let expected = [
        "the service cannot be served as it is described",
        away,
        away,
    ];
    assert_eq!(*warnings.0.lock(), expected);
}

/// The description of a service whose addresses cannot be used is right.
#[tokio::test(start_paused = true)]
async fn a_service_without_a_usable_address_is_not_logged_as_a_wrong_description() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    settle_callsites();
    let source = ScriptedDiscoverer::new("script");
    let problem = proxy_model::Problem::warning("", "no_usable", "no replica is usable");
    for _ in 0..2 {
        source.answer([service("a", "http://a").with_unusable(problem.clone().into())]);
    }
    source.answer([service("a", "http://a"), broken("b")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 3).await;
    let expected = [
        "requests to the service lack a destination that can be used",
        "the service cannot be served as it is described",
    ];
    assert_eq!(*warnings.0.lock(), expected);
}

/// The label of a service is corrected, and none of its addresses can be used: what is to be done is another thing.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_quarantined_for_another_reason_is_logged_once_more() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    settle_callsites();
    let source = ScriptedDiscoverer::new("script");
    let problem = proxy_model::Problem::warning("", "no_usable", "no replica is usable");
    for _ in 0..2 {
        for _ in 0..3 {
            source.answer([broken("a")]);
        }
        for _ in 0..3 {
            source.answer([service("a", "http://a").with_unusable(problem.clone().into())]);
        }
    }
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 12).await;
    let (wrong, unusable) = (
        "the service cannot be served as it is described",
        "requests to the service lack a destination that can be used",
    );
    assert_eq!(*warnings.0.lock(), [wrong, unusable, wrong, unusable]);
}

/// A rejection is reported as one, also after other failures: an operator has to correct a credential.
#[tokio::test(start_paused = true)]
async fn a_rejection_is_no_missing_answer() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    settle_callsites();
    let source = ScriptedDiscoverer::new("script");
    let forbidden = || DiscoverError::rejected("GET /x: 403 Forbidden");
    source.fail(forbidden());
    source.fail(forbidden());
    source.answer([service("a", "http://a")]);
    source.fail(DiscoverError::transient("down"));
    source.fail(forbidden());
    source.fail(forbidden());
    let part = || Discovery::new(vec![service("a", "http://a")]);
    let outdated = |kind| part().outdated(Timestamp::now(), kind, "GET /x: 403 Forbidden");
    source.answer_with(part());
    source.answer_with(outdated(DiscoverErrorKind::Transient));
    source.answer_with(outdated(DiscoverErrorKind::Rejected));
    source.answer_with(outdated(DiscoverErrorKind::Rejected));
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 10).await;
    let expected = [
        "the source rejects the request, nothing of it serves yet",
        "the source cannot be read, its last known good configuration serves",
        "the source rejects the request, its last known good configuration serves",
        "the source answers in part, older answers stand in for the rest",
        "the source rejects a part of the requests, older answers stand in for the rest",
    ];
    assert_eq!(*warnings.0.lock(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Dropped after any number of polls, in any state: the published state can still be read, and the
    /// source is shown as stopped.
    #[test]
    fn the_driver_can_be_dropped_anywhere(polls in 0_usize..40) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let source = ScriptedDiscoverer::new("script");
            source.answer([service("a", "http://a"), broken("b")]);
            source.fail(DiscoverError::transient("down"));
            source.delay(Duration::from_secs(1));
            let (provider, driver) = Runner::new(source.clone())
                .options(options().with_persist(directory.path().join("last-good")))
                .into_parts();
            let mut driver = Box::pin(driver);
            let mut left = polls;
            poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                driver.as_mut().poll(context)
            })
            .await;
            let before = provider.state();
            drop(driver);
            let after = provider.state();
            assert_eq!(after.status.state, SourceState::Stopped);
            assert_eq!(serving(&after), serving(&before));
        });
    }
}
