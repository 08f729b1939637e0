//! Tests that unreachable services are refreshed at once, and rarely if that does not help.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::error::DiscoverError;
use crate::merge::{Merge, MergeSource};
use crate::unreachable::{Unreachable, UnreachableClusters};

struct Running {
    source: ScriptedDiscoverer,
    provider: DiscoveryProvider,
}

impl Running {
    /// Starts a runner with default options and waits for its first result.
    async fn start() -> Self {
        Self::start_with(options()).await
    }

    async fn start_with(options: RunnerOptions) -> Self {
        let source = ScriptedDiscoverer::new("script");
        source.answer([service("a", "http://a1"), service("b", "http://b")]);
        let provider = Runner::new(source.clone()).options(options).start();
        after_cycles(&source, &provider, 1).await;
        // The middle of an interval of 30 s.
        tokio::time::sleep(Duration::from_secs(10)).await;
        Self { source, provider }
    }

    fn fail(&self, cluster: &str) {
        self.provider
            .unreachable(&cluster.into(), Unreachable::Destination);
    }

    /// Fails requests all the time. Returns the times of the polls meanwhile, since the beginning.
    async fn failing_for(&self, time: Duration) -> Vec<Duration> {
        let begun = Instant::now();
        let mut asked = Vec::new();
        let mut calls = self.source.calls();
        while begun.elapsed() < time {
            self.fail("a");
            tokio::time::sleep(Duration::from_millis(5)).await;
            for _ in calls..self.source.calls() {
                asked.push(begun.elapsed());
            }
            calls = self.source.calls();
        }
        asked
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_while_requests_succeed() {
    let running = Running::start().await;
    let calls = running.source.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let cycles = running.source.calls() - calls;
    assert!((18..=23).contains(&cycles), "{cycles}");
    assert!(running.source.take_unreachable().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_connection_asks_within_moments() {
    let running = Running::start().await;
    running
        .source
        .answer([service("a", "http://a2"), service("b", "http://b")]);
    running.fail("A");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(running.source.calls(), 2);
    assert_eq!(
        serving(&running.provider.state()),
        ["a=http://a2", "b=http://b"]
    );
    let told = running.source.take_unreachable();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&*told[0].name, told[0].seen),
        ("a", Unreachable::Destination)
    );
    // It has moved. When it moves again, that is seen as fast.
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.fail("a");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(running.source.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_helps_nothing_is_asked_each_second_and_then_rarely() {
    let running = Running::start().await;
    let asked = running.failing_for(Duration::from_secs(20)).await;
    // The cluster chooses another primary at some time, and it is seen within 1.3 s.
    assert!((15..=28).contains(&asked.len()), "{}", asked.len());
    let mut before = Duration::ZERO;
    for at in asked {
        assert!(
            at - before <= Duration::from_millis(1_400),
            "{before:?} {at:?}"
        );
        before = at;
    }
    running.failing_for(Duration::from_secs(300)).await;
    let rarely = running.failing_for(Duration::from_secs(300)).await;
    assert!(rarely.len() <= 24, "{}", rarely.len());

    // After a while without failures it is as at first.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let again = running.failing_for(Duration::from_secs(5)).await;
    assert!(again.len() >= 4, "{again:?}");
}

/// The proxies of a fleet see a failure at the same moment, and refresh at different ones, the first time and later.
#[tokio::test(start_paused = true)]
async fn a_fleet_does_not_ask_at_the_same_moment() {
    let (mut first, mut waits) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..20 {
        let running = Running::start_with(options().with_seed(seed)).await;
        let asked = running.failing_for(Duration::from_secs(1)).await;
        assert!(asked[0] <= Duration::from_millis(60), "{asked:?}");
        first.insert(asked[0]);
        waits.insert(asked[1] - asked[0]);
    }
    assert!(first.len() >= 5, "{first:?}");
    assert!(waits.len() >= 5, "{waits:?}");
}

/// Ten thousand failures a second are one look.
#[tokio::test(start_paused = true)]
async fn a_flood_of_failures_asks_no_more() {
    let running = Running::start().await;
    for _ in 0..10_000 {
        running.fail("a");
        running.fail("b");
        running.fail("nobody's");
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(running.source.calls(), 2);
    let mut told = running.source.take_unreachable();
    told.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<_> = told.iter().map(|service| &*service.name).collect();
    assert!(
        names == ["a", "b"] || names == ["a"] || names == ["b"],
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_source_that_ignores_it_is_not_asked() {
    let running = Running::start().await;
    running.source.ignore_unreachable(true);
    let asked = running.failing_for(Duration::from_secs(15)).await;
    assert!(asked.is_empty(), "{asked:?}");
    assert!(!running.source.take_unreachable().is_empty());
}

/// The back-off of an unavailable source would be up to 30 s.
#[tokio::test(start_paused = true)]
async fn a_source_that_comes_back_is_noticed_while_requests_fail() {
    let running = Running::start().await;
    for _ in 0..300 {
        running.source.fail(DiscoverError::transient("down"));
    }
    let asked = running.failing_for(Duration::from_secs(200)).await;
    assert!((100..=170).contains(&asked.len()), "{}", asked.len());
    running.source.clear();
    running.source.answer([service("a", "http://a2")]);
    let back = running.failing_for(Duration::from_secs(2)).await;
    assert!(!back.is_empty());
    assert_eq!(serving(&running.provider.state()), ["a=http://a2"]);

    // A source that requests a longer wait gets it, and so does one that rejects.
    for error in [
        DiscoverError::transient("later").with_retry_after(Duration::from_secs(60)),
        DiscoverError::permanent("who are you?"),
    ] {
        running.source.fail(error);
        running.source.trigger();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let asked = running.failing_for(Duration::from_secs(10)).await;
        assert!(asked.is_empty(), "{asked:?}");
        tokio::time::sleep(Duration::from_secs(120)).await;
    }
}

/// Looking at a cluster whose cycles take long takes half of the time.
#[tokio::test(start_paused = true)]
async fn cycles_that_take_long_are_not_asked_for_all_the_time() {
    let running = Running::start().await;
    for _ in 0..10 {
        running.source.delay(Duration::from_secs(5));
        running
            .source
            .answer([service("a", "http://a1"), service("b", "http://b")]);
    }
    let asked = running.failing_for(Duration::from_secs(29)).await;
    assert!((2..=4).contains(&asked.len()), "{asked:?}");
}

/// The merge knows whose the cluster is, and by which name.
#[tokio::test(start_paused = true)]
async fn the_provider_of_the_cluster_is_told() {
    let sources = ["one", "two"].map(ScriptedDiscoverer::new);
    let mut merge = Merge::new();
    for (source, prefix) in sources.iter().zip([None, Some("p-")]) {
        source.answer([service("a", "http://a")]);
        let provider = Runner::new(source.clone()).options(options()).start();
        let mut merged = MergeSource::new(provider);
        if let Some(prefix) = prefix {
            merged = merged.with_prefix(prefix);
        }
        merge = merge.source(merged);
    }
    let merged = Arc::new(merge.start());
    merged.ready().await;
    let reported = Arc::new(UnreachableClusters::new());
    let following = tokio::spawn({
        let (merged, reported) = (Arc::clone(&merged), Arc::clone(&reported));
        async move { merged.follow_unreachable(&reported).await }
    });
    for (cluster, told) in [
        ("a", [1, 0]),
        ("P-a", [0, 1]),
        ("p-", [0, 0]),
        ("x", [0, 0]),
    ] {
        tokio::time::sleep(Duration::from_secs(2)).await;
        reported.report(&cluster.into(), Unreachable::Cluster);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let heard = [0, 1].map(|i: usize| sources[i].take_unreachable().len());
        assert_eq!(heard, told, "{cluster}");
    }
    following.abort();
}

/// A task that counts how often it is woken.
fn counted(work: impl Future<Output = ()> + Send + 'static) -> (Arc<AtomicUsize>, AbortHandle) {
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let mut work = Box::pin(work);
    let work = poll_fn(move |context| {
        counter.fetch_add(1, Ordering::Relaxed);
        work.as_mut().poll(context)
    });
    (polls, tokio::spawn(work).abort_handle())
}

/// Ten thousand failures a second, of two clusters in turn. The number of wake-ups is the same as with ten.
#[tokio::test(start_paused = true)]
async fn wake_ups_are_paced_as_looks_are() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    let (provider, driver) = Runner::new(source.clone()).options(options()).into_parts();
    let (runner, driving) = counted(driver);
    let merged = Arc::new(Merge::new().source(MergeSource::new(provider)).start());
    merged.ready().await;
    let reported = Arc::new(UnreachableClusters::new());
    let (passing, following) = counted({
        let (merged, reported) = (Arc::clone(&merged), Arc::clone(&reported));
        async move { match merged.follow_unreachable(&reported).await {} }
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    let woken = || [&runner, &passing].map(|polls| polls.load(Ordering::Relaxed));
    let (before, calls) = (woken(), source.calls());
    for _ in 0..5_000 {
        for cluster in ["a", "b"] {
            for _ in 0..5 {
                reported.report(&cluster.into(), Unreachable::Destination);
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let polls: Vec<_> = woken()
        .iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect();
    let looks = source.calls() - calls;
    assert!((4..=16).contains(&looks), "{looks}");
    // A cycle and its look wake the runner some times more.
    assert!(
        polls[1] <= 55 && polls[0] <= 55 + 16 * looks,
        "{polls:?}, {looks} looks"
    );

    // The first failure is handled at once, independent of earlier ones.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let calls = source.calls();
    reported.report(&"a".into(), Unreachable::Cluster);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(source.calls() > calls);
    let before = woken();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let idle: usize = woken()
        .iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .sum();
    assert!(idle <= 30, "{idle}");
    driving.abort();
    following.abort();
}
