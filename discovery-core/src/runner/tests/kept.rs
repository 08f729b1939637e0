//! The state besides configuration that is kept over a restart, and the reports about it.

use parking_lot::Mutex;
use proxy_model::{Problem, Problems};

use super::*;
use crate::discovery::Discovery;
use crate::error::DiscoverError;
use crate::report::ServiceOutcome;

fn codes(state: &ProviderState) -> Vec<&str> {
    state
        .problems
        .iter()
        .map(|problem| &*problem.code)
        .collect()
}

/// A poll without end is the state of a registry that accepts connections and hangs.
#[tokio::test(start_paused = true)]
async fn a_source_that_is_silent_from_the_start_is_a_problem() {
    let directory = tempfile::tempdir().unwrap();
    let kept = options().with_persist(directory.path().join("last-good"));
    for restores in [false, true] {
        let source = ScriptedDiscoverer::new("script");
        source.delay(Duration::from_secs(20));
        source.answer([service("a", "http://a")]);
        let begun = Instant::now();
        let provider = Runner::new(source.clone()).options(kept.clone()).start();
        let mut states = provider.subscribe();
        let told = |state: &Arc<ProviderState>| codes(state) == ["source_not_answered"];
        let waited = tokio::time::timeout(LONG, states.wait_for(told)).await;
        let state = Arc::clone(&*waited.expect("it is told").unwrap());
        let seconds = begun.elapsed().as_secs();
        assert!((5..8).contains(&seconds), "{seconds}");
        let (expected, message) = match restores {
            false => (SourceState::Starting, "nothing of it serves"),
            true => (SourceState::Restored, "stored on disk serves"),
        };
        assert_eq!(state.status.state, expected);
        let problem = state.problems.iter().next().unwrap();
        assert!(problem.message.contains(message), "{problem}");
        let state = in_state(&mut states, SourceState::Live).await;
        assert_eq!(codes(&state), [""; 0]);
        source.wait_for_reports(1).await;
    }
}

/// The next start would find nothing.
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_is_a_problem_until_it_can() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    let provider = Runner::new(source.clone())
        .options(options().with_persist(missing.join("last-good")))
        .start();
    let mut states = provider.subscribe();
    let told = |state: &Arc<ProviderState>| codes(state) == ["persist_failed"];
    let waited = tokio::time::timeout(LONG, states.wait_for(told)).await;
    let state = Arc::clone(&*waited.expect("it is told").unwrap());
    assert_eq!(serving(&state), ["a=http://a"]);
    let text = state.problems.to_string();
    assert!(text.contains("last-good"), "{text}");
    // Later polls do not take it back.
    source.wait_for_reports(3).await;
    assert_eq!(codes(&provider.state()), ["persist_failed"]);
    std::fs::create_dir(&missing).unwrap();
    let waited = tokio::time::timeout(LONG, states.wait_for(|state| codes(state).is_empty()));
    assert!(waited.await.is_ok());
}

/// The source is away after the restart.
#[tokio::test(start_paused = true)]
async fn quarantined_services_stay_listed_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = options().with_persist(directory.path().join("last-good"));
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    source.answer([broken("a"), service("b", "http://b"), broken("new")]);
    let provider = Runner::new(source.clone()).options(options.clone()).start();
    source.wait_for_reports(2).await;
    let before = after_cycles(&source, &provider, 2).await;
    assert_eq!(quarantined(&before), ["a", "new"]);
    drop(provider);

    let source = ScriptedDiscoverer::new("script");
    source.fail(DiscoverError::transient("down"));
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    tokio::time::advance(Duration::from_secs(100)).await;
    let provider = Runner::new(source.clone()).options(options).start();
    let mut states = provider.subscribe();
    let state = in_state(&mut states, SourceState::Failing).await;
    assert_eq!(quarantined(&state), ["a", "new"]);
    assert_eq!(serving(&state), ["a=http://broken", "b=http://b"]);
    for (now, then) in state
        .status
        .quarantined
        .iter()
        .zip(&before.status.quarantined)
    {
        assert_eq!(now.problems, then.problems);
    }
    assert!(state.status.quarantined[1].last_known_good.is_none());
    // The next answer corrects one and removes the other.
    let state = in_state(&mut states, SourceState::Live).await;
    assert_eq!(quarantined(&state), [""; 0]);
}

/// A source with a memo, which counts the memos that it gets back.
struct Memorious {
    script: ScriptedDiscoverer,
    memo: &'static str,
    restored: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Discoverer for Arc<Memorious> {
    fn name(&self) -> &str {
        "memorious"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        Ok(self.script.discover().await?.with_memo(self.memo))
    }

    fn restored(&self, memo: &str) {
        assert_eq!(self.script.calls(), 0, "before everything else");
        self.restored.lock().push(memo.to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_gets_its_memo_back_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = options().with_persist(directory.path().join("last-good"));
    let mut expected: Vec<String> = Vec::new();
    // The configuration is the same: a new memo alone is kept, too.
    for memo in ["one", "two", "three"] {
        let script = ScriptedDiscoverer::new("script");
        script.answer([service("a", "http://a")]);
        let source = Arc::new(Memorious {
            script: script.clone(),
            memo,
            restored: Mutex::default(),
        });
        let provider = Runner::new(Arc::clone(&source))
            .options(options.clone())
            .start();
        after_cycles(&script, &provider, 1).await;
        assert_eq!(*source.restored.lock(), expected);
        expected = vec![memo.to_owned()];
    }
}

/// Forms that the source kept are served unchanged, and follow the source.
#[tokio::test(start_paused = true)]
async fn what_a_source_keeps_itself_serves_and_is_quarantined() {
    let rejected = || Problems::from(Problem::error("/cluster/a", "not_honoured", "unsupported"));
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://1")]);
    source.answer([service("a", "http://2").with_rejected(rejected())]);
    source.answer([
        service("a", "http://2").with_rejected(rejected()),
        DiscoveredService::configured("b", ProxyConfig::default()).with_rejected(rejected()),
    ]);
    source.answer([service("a", "http://3")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://2"]);
    assert_eq!(quarantined(&state), ["a"]);
    assert!(state.problems.has_errors());
    let listed = &state.status.quarantined[0];
    assert!(
        listed.last_known_good.unwrap().age() >= Duration::from_secs(27),
        "{listed:?}"
    );
    assert!(
        listed.destinations.unwrap().age() <= Duration::from_secs(1),
        "{listed:?}"
    );
    let reports = source.wait_for_reports(2).await;
    assert!(matches!(
        reports[1].services[0].outcome,
        ServiceOutcome::Quarantined {
            last_known_good_age: Some(_),
            ..
        }
    ));

    let state = after_cycles(&source, &provider, 3).await;
    assert_eq!(quarantined(&state), ["a", "b"]);
    let [a, b] = &state.status.quarantined[..] else {
        panic!("two services")
    };
    assert!(a.since.age() >= Duration::from_secs(27), "since it began");
    assert_eq!(b.serves(), "nothing serves");

    let state = after_cycles(&source, &provider, 4).await;
    assert_eq!(serving(&state), ["a=http://3"]);
    assert_eq!(quarantined(&state), [""; 0]);
    assert!(!state.problems.has_errors());
}
