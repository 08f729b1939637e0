//! Tests of the publication of snapshots and of the reports about it.

use tokio::time::Instant;

use super::*;
use crate::runner::{Runner, RunnerOptions};
use crate::status::SourceState;
use crate::testing::ScriptedDiscoverer;
use crate::{DiscoverError, DiscoveredService};

#[tokio::test(start_paused = true)]
async fn it_is_ready_when_every_required_provider_has_something() {
    let required = StaticProvider::waiting("required");
    let optional = StaticProvider::waiting("optional").required(false);
    let forced =
        MergeSource::new(StaticProvider::waiting("forced").required(false)).with_required(true);
    let present = provider("present", simple(&[], &[("p", "http://p")]));
    let merged = Merge::new()
        .provider(required.clone())
        .provider(optional)
        .source(forced)
        .provider(present)
        .start();
    let state = settled(&merged).await;
    assert!(!state.ready);
    assert_eq!(state.waiting_for, ["required".into(), "forced".into()]);
    assert_eq!(serving(&state), ["p=http://p"]);
    // An empty configuration is one.
    required.update(ProxyConfig::default());
    let state = settled(&merged).await;
    assert_eq!(state.waiting_for, ["forced".into()]);
}

/// A configuration restored from disk makes a merge ready, but confirms nothing.
#[tokio::test(start_paused = true)]
async fn it_is_confirmed_when_every_required_source_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    let options = RunnerOptions::default().with_persist(folder.path().join("kept"));
    let begin = |source: &ScriptedDiscoverer| {
        let runner = Runner::new(source.clone()).options(options.clone());
        let optional = StaticProvider::waiting("optional").required(false);
        let merge = Merge::new().provider(runner.start()).provider(optional);
        merge.start()
    };
    let a = || DiscoveredService::configured("a", simple(&[], &[("a", "http://a")]));
    let source = ScriptedDiscoverer::new("script");
    source.answer([a()]);
    let merged = begin(&source);
    tokio::time::timeout(LONG, merged.confirmed())
        .await
        .unwrap();
    source.wait_for_reports(1).await;
    drop(merged);

    let source = ScriptedDiscoverer::new("script");
    for _ in 0..10 {
        source.fail(DiscoverError::transient("away"));
    }
    source.answer([a()]);
    let merged = begin(&source);
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert!(source.calls() <= 10);
    // An unchanged result counts as a successful poll too.
    let confirmed = tokio::time::timeout(LONG, merged.confirmed())
        .await
        .unwrap();
    assert!(source.calls() > 10);
    assert_eq!(serving(&confirmed), ["a=http://a"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_when_nothing_changed() {
    let one = provider(
        "one",
        simple(&[("r", "a")], &[("a", "http://a"), ("b", "http://b")]),
    );
    let merged = Merge::new().provider(one.clone()).start();
    let first = ready(&merged).await;
    let mut snapshots = merged.snapshots();
    let mut states = merged.subscribe();
    snapshots.mark_unchanged();
    states.mark_unchanged();
    assert!(!one.update(simple(
        &[("r", "a")],
        &[("b", "http://b"), ("a", "http://a")]
    )));
    let state = settled(&merged).await;
    assert!(!snapshots.has_changed().unwrap());
    assert!(!states.has_changed().unwrap());
    assert!(Arc::ptr_eq(&first.snapshot, &state.snapshot));
    assert_eq!(state.publications, 1);
}

#[tokio::test(start_paused = true)]
async fn new_problems_are_told_without_a_new_snapshot() {
    let one = provider("one", simple(&[], &[("a", "http://a")]));
    let merged = Merge::new().provider(one.clone()).start();
    ready(&merged).await;
    let mut snapshots = merged.snapshots();
    let mut states = merged.subscribe();
    snapshots.mark_unchanged();
    states.mark_unchanged();
    let problem = proxy_model::Problem::warning("", "odd", "something is odd");
    one.update_with(simple(&[], &[("a", "http://a")]), problem.into());
    let state = settled(&merged).await;
    assert!(states.has_changed().unwrap());
    assert!(!snapshots.has_changed().unwrap());
    assert_eq!(problems(&state), ["one: warning at /: something is odd"]);
}

/// F27: a reload storm of 1,000 a second for ten seconds.
#[tokio::test(start_paused = true)]
async fn a_storm_of_changes_is_published_in_moderation_and_the_last_one_wins() {
    let one = provider("one", ProxyConfig::default());
    let merged = Merge::new().provider(one.clone()).start();
    ready(&merged).await;
    let mut snapshots = merged.snapshots();
    let counter = tokio::spawn(async move {
        let mut times = Vec::new();
        while snapshots.changed().await.is_ok() {
            snapshots.borrow_and_update();
            times.push(Instant::now());
        }
        times
    });
    for i in 0..10_000 {
        one.update(simple(&[], &[("a", &format!("http://h{i}"))]));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://h9999"]);
    drop(merged);
    let times = counter.await.unwrap();
    assert!((150..=202).contains(&times.len()), "{}", times.len());
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps.iter().all(|gap| *gap >= Duration::from_millis(50)),
        "{:?}",
        gaps.iter().min()
    );
}

/// Replaced snapshots are freed: one generation is left if no other is held.
#[tokio::test(start_paused = true)]
async fn old_snapshots_are_freed() {
    let one = provider("one", simple(&[], &[("a", "http://0")]));
    let merged = Merge::new().provider(one.clone()).start();
    let first = Arc::downgrade(&ready(&merged).await.snapshot);
    one.update(simple(&[], &[("a", "http://1")]));
    settled(&merged).await;
    assert!(first.upgrade().is_none());
}

/// F37: start while every source is away.
#[tokio::test(start_paused = true)]
async fn a_start_in_an_outage_is_ready_when_a_source_answers_or_something_was_kept() {
    let directory = tempfile::tempdir().unwrap();
    let options = RunnerOptions::default().with_persist(directory.path().join("kept"));
    let away = || {
        let source = ScriptedDiscoverer::new("script");
        for _ in 0..5 {
            source.fail(DiscoverError::transient("down"));
        }
        source.answer([DiscoveredService::configured(
            "a",
            simple(&[], &[("a", "http://a")]),
        )]);
        source
    };
    let source = away();
    let merged = Merge::new()
        .provider(Runner::new(source.clone()).options(options.clone()).start())
        .start();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!merged.state().ready);
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    source.wait_for_reports(1).await;
    drop(merged);

    let merged = Merge::new()
        .provider(Runner::new(away()).options(options).start())
        .start();
    let begun = Instant::now();
    let state = ready(&merged).await;
    assert!(begun.elapsed() <= Duration::from_millis(50));
    assert_eq!(serving(&state), ["a=http://a"]);
    let report = &merged.providers()[0];
    assert!(report.status.state.is_stale());
    assert!(matches!(
        report.status.state,
        SourceState::Restored | SourceState::Failing
    ));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_away_serves_on() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([DiscoveredService::configured(
        "a",
        simple(&[], &[("a", "http://a")]),
    )]);
    let (provider, driver) = Runner::new(source).into_parts();
    let task = tokio::spawn(driver);
    let other = StaticProvider::new("other", simple(&[], &[("b", "http://1")]));
    let merged = Merge::new()
        .provider(provider)
        .provider(other.clone())
        .start();
    ready(&merged).await;
    task.abort();
    settled(&merged).await;
    assert_eq!(merged.providers()[0].status.state, SourceState::Stopped);
    other.update(simple(&[], &[("b", "http://2")]));
    assert_eq!(
        serving(&*settled(&merged).await),
        ["a=http://a", "b=http://2"]
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_merge_ends_it_and_its_providers() {
    let source = ScriptedDiscoverer::new("script");
    let merged = Merge::new()
        .provider(Runner::new(source.clone()).start())
        .start();
    ready(&merged).await;
    let (mut snapshots, mut states) = (merged.snapshots(), merged.subscribe());
    drop(merged);
    let closed = async {
        while snapshots.changed().await.is_ok() {}
        while states.changed().await.is_ok() {}
    };
    tokio::time::timeout(LONG, closed)
        .await
        .expect("the channels are closed");
    let calls = source.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(source.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_problem_that_the_runner_has_found_is_told_once() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([DiscoveredService::configured(
        "a",
        simple(&[("r", "nowhere")], &[]),
    )]);
    let merged = Merge::new().provider(Runner::new(source).start()).start();
    let state = ready(&merged).await;
    let pointers: Vec<_> = state
        .problems
        .iter()
        .map(|p| p.problem.pointer.as_str())
        .collect();
    assert_eq!(pointers, ["/Services/a/Routes/r/ClusterId"]);
}
