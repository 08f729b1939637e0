//! The source is away.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::discovery::Discovery;
use crate::error::{DiscoverError, DiscoverErrorKind};
use crate::report::CycleReport;

#[tokio::test(start_paused = true)]
async fn an_error_never_empties() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    source.fail(DiscoverError::transient("down").with_source(std::io::Error::other("refused")));
    source.fail(DiscoverError::transient("down"));
    source.answer([service("a", "http://a2")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    let live = after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 3).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert_eq!(state.revision, live.revision);
    assert_eq!(state.status.state, SourceState::Failing);
    assert_eq!(state.status.consecutive_failures, 2);
    assert!(state.status.last_ok.unwrap().age() >= Duration::from_secs(27));
    let error = state.status.last_error.as_ref().unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (DiscoverErrorKind::Transient, "down")
    );

    let state = after_cycles(&source, &provider, 4).await;
    assert_eq!(serving(&state), ["a=http://a2"]);
    assert_eq!(state.status.state, SourceState::Live);
    assert_eq!(state.status.consecutive_failures, 0);
    assert!(state.status.last_error.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_answered_has_nothing_to_serve() {
    let source = ScriptedDiscoverer::new("script");
    source.fail(DiscoverError::permanent("wrong key"));
    let provider = Runner::new(source.clone()).options(options()).start();
    let state = after_cycles(&source, &provider, 1).await;
    assert!(state.config.is_none());
    assert_eq!(state.status.state, SourceState::Failing);
    let wait = state.status.next_cycle.unwrap() - Instant::now();
    assert!(wait >= Duration::from_secs(14), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_dropped_in_time() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    source.hang();
    source.answer([service("a", "http://a2")]);
    let provider = Runner::new(source.clone())
        .options(options().with_discover_timeout(Duration::from_secs(7)))
        .start();
    after_cycles(&source, &provider, 1).await;
    let begun = Instant::now();
    let state = in_state(&mut provider.subscribe(), SourceState::Failing).await;
    assert!(begun.elapsed() <= Duration::from_secs(33 + 8));
    assert_eq!(serving(&state), ["a=http://a"]);
    let error = state.status.last_error.as_ref().unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (DiscoverErrorKind::TimedOut, "no answer within 7s")
    );
    assert_eq!(
        serving(&*after_cycles(&source, &provider, 3).await),
        ["a=http://a2"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_like_others() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    source.panic();
    source.answer([service("a", "http://a2")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    let error = state.status.last_error.as_ref().unwrap();
    assert_eq!(error.kind, DiscoverErrorKind::Panicked);
    assert!(error.message.contains("as the script says"));
    assert_eq!(
        serving(&*after_cycles(&source, &provider, 3).await),
        ["a=http://a2"]
    );
}

/// A source that does not take reports well.
struct Grumpy {
    script: ScriptedDiscoverer,
    reports: AtomicUsize,
}

#[async_trait::async_trait]
impl Discoverer for Grumpy {
    fn name(&self) -> &str {
        "grumpy"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        self.script.discover().await
    }

    async fn published(&self, _: &CycleReport) {
        match self.reports.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("no report, please"),
            _ => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reports_that_panic_or_hang_hold_nothing_up_for_long() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    let grumpy = Grumpy {
        script: source.clone(),
        reports: AtomicUsize::new(0),
    };
    let provider = Runner::new(grumpy).options(options()).start();
    let begun = Instant::now();
    let state = after_cycles(&source, &provider, 5).await;
    assert_eq!(state.status.state, SourceState::Live);
    // Four intervals of at most 33 s, and four times 10 s for a report.
    assert!(begun.elapsed() <= Duration::from_secs(4 * 33 + 4 * 10 + 1));
}

#[tokio::test(start_paused = true)]
async fn a_restart_during_an_outage_serves_what_was_kept() {
    let directory = tempfile::tempdir().unwrap();
    let options = options().with_persist(directory.path().join("last-good"));
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    let provider = Runner::new(source.clone()).options(options.clone()).start();
    source.wait_for_reports(1).await;
    let saved = after_cycles(&source, &provider, 1).await;
    assert!(saved.status.persistence.as_ref().unwrap().error.is_none());
    drop(provider);

    let source = ScriptedDiscoverer::new("script");
    source.hang();
    source.answer([broken("a")]);
    let provider = Runner::new(source.clone()).options(options).start();
    let mut states = provider.subscribe();
    let state = in_state(&mut states, SourceState::Restored).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    assert_eq!(state.revision, saved.revision);
    assert!(state.status.last_ok.is_some());
    let state = in_state(&mut states, SourceState::Failing).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    // The first result counts, and the kept state still helps a service in quarantine.
    let state = in_state(&mut states, SourceState::Live).await;
    assert_eq!(serving(&state), ["a=http://broken"], "where it is now");
    let path = &state.config.as_ref().unwrap().routes[0].r#match.path;
    assert_eq!(path.as_deref(), Some("/a"));
    assert_eq!(quarantined(&state), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_and_cannot_be_used_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("last-good");
    std::fs::write(&path, "discovery-last-good 1 5 abc\nxxxxx").unwrap();
    let source = ScriptedDiscoverer::new("script");
    source.fail(DiscoverError::transient("down"));
    source.answer([service("a", "http://a")]);
    let provider = Runner::new(source.clone())
        .options(options().with_persist(path.clone()))
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert!(state.config.is_none());
    source.wait_for_reports(1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("http://a"));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_rejects_changes_nothing_but_the_status() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    let provider = Runner::new(source.clone())
        .options(options().with_persist(missing.join("last-good")))
        .start();
    source.wait_for_reports(1).await;
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert!(state.status.persistence.as_ref().unwrap().error.is_some());
    // It is tried again when a minute has passed, though nothing has changed.
    std::fs::create_dir(&missing).unwrap();
    let mut cycles = 1;
    let state = loop {
        cycles += 1;
        source.wait_for_reports(cycles).await;
        let state = after_cycles(&source, &provider, cycles as u64).await;
        if state.status.persistence.as_ref().unwrap().error.is_none() {
            break state;
        }
        assert!(cycles < 6);
    };
    assert!(cycles >= 3, "{cycles}");
    assert!(missing.join("last-good").exists());
    assert_eq!(state.status.changes, 1);
}

/// The file is written again although nothing changes, so that a restart takes what was read just now for new.
#[tokio::test(start_paused = true)]
async fn the_kept_file_is_behind_by_a_part_of_the_time_that_unread_destinations_serve() {
    let directory = tempfile::tempdir().unwrap();
    for (grace, cycles_behind) in [(60, 1..=1), (6 * 60, 2..=3), (30 * 60, 9..=12)] {
        let path = directory.path().join(grace.to_string());
        let written = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let source = ScriptedDiscoverer::new("script");
        source.answer([service("a", "http://a")]);
        let options = options()
            .with_persist(path.clone())
            .with_unread_grace(Duration::from_secs(grace));
        let provider = Runner::new(source.clone()).options(options).start();
        source.wait_for_reports(1).await;
        after_cycles(&source, &provider, 1).await;
        let first = written();
        let mut cycles = 1;
        while written() == first {
            cycles += 1;
            assert!(cycles <= 20, "{grace} s");
            source.wait_for_reports(cycles).await;
            after_cycles(&source, &provider, cycles as u64).await;
        }
        assert!(cycles_behind.contains(&(cycles - 1)), "{grace} s: {cycles}");
    }
}

/// A pipe in place of a file would never be opened.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn pipes_in_place_of_the_kept_file_are_replaced() {
    let new = format!("last-good.{}.new", std::process::id());
    for name in ["last-good", &new] {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let source = ScriptedDiscoverer::new("script");
        source.answer([service("a", "http://a")]);
        let persist = directory.path().join("last-good");
        let provider = Runner::new(source.clone())
            .options(options().with_persist(persist))
            .start();
        source.wait_for_reports(1).await;
        let state = after_cycles(&source, &provider, 1).await;
        assert_eq!(serving(&state), ["a=http://a"]);
        let error = state.status.persistence.as_ref().unwrap().error.clone();
        assert_eq!(error, None, "what is in the way is replaced");
        assert!(directory.path().join("last-good").is_file());
    }
}

/// A parser that hangs while the other end of the channel is held.
struct HungParser(parking_lot::Mutex<Option<std::sync::mpsc::Receiver<()>>>);

impl LabelsParser for HungParser {
    fn parse(&self, _: &str, _: &crate::LabelledService) -> crate::Parsed {
        if let Some(held) = self.0.lock().take() {
            let _ = held.recv();
        }
        crate::Parsed::not_enabled()
    }
}

/// The test runs in real time, since paused time stands still while a thread works.
#[tokio::test]
async fn a_parser_that_hangs_is_told_and_recovered_from() {
    let (hold, held) = std::sync::mpsc::channel();
    let parser = HungParser(parking_lot::Mutex::new(Some(held)));
    let source = ScriptedDiscoverer::new("script");
    source.answer([DiscoveredService::labelled(
        "a",
        [("proxy.enable", "true")],
        [("d", DestinationConfig::default())],
    )]);
    let options = options()
        .with_discover_timeout(Duration::from_secs(1))
        .with_interval(Duration::from_millis(20))
        .with_backoff(Duration::from_millis(20))
        .with_backoff_max(Duration::from_millis(20))
        .with_min_gap(Duration::from_millis(10));
    let provider = Runner::new(source.clone())
        .labels(parser)
        .options(options)
        .start();
    let guard = Duration::from_secs(60);
    let mut states = provider.subscribe();
    let failing = states.wait_for(|state| state.status.state == SourceState::Failing);
    let state = tokio::time::timeout(guard, failing).await.expect("in time");
    let message = state.unwrap().status.last_error.clone().unwrap().message;
    assert_eq!(
        message,
        "making configuration of the services did not end within 1s"
    );
    // The source is still polled, and the parser gets no second thread.
    tokio::time::timeout(guard, source.wait_for_calls(3))
        .await
        .expect("it is asked on");
    let state = provider.state();
    assert!(state.status.consecutive_failures >= 2);
    let message = &state.status.last_error.as_ref().unwrap().message;
    assert!(message.contains("has not ended since"), "{message}");
    drop(hold);
    let live = states.wait_for(|state| state.status.state == SourceState::Live);
    assert!(tokio::time::timeout(guard, live).await.is_ok());
}
