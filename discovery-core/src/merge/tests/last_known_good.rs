//! Items that turn bad keep the form that was accepted before, as long as their provider lists them.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use proxy_model::{Problem, Problems, pointer_to};
use tokio::sync::watch;

use super::*;
use crate::filter::FilterContext;
use crate::provider::ProviderState;
use crate::validator::Candidate;

fn isolated(config: ProxyConfig) -> StaticProvider {
    provider("pushed", config).strictness(Strictness::Isolated)
}

fn codes(state: &MergedState) -> Vec<&str> {
    let problems = state.problems.iter();
    problems.map(|sourced| &*sourced.problem.code).collect()
}

fn kept(state: &MergedState) -> Vec<&str> {
    let problems = state.problems.iter().map(|sourced| &sourced.problem);
    let kept = problems.filter(|problem| problem.code == "last_good_serves");
    kept.map(|problem| &*problem.message).collect()
}

#[tokio::test(start_paused = true)]
async fn a_bad_update_of_an_item_leaves_the_item_as_it_was() {
    let source = isolated(simple(
        &[("r", "a"), ("s", "b")],
        &[("a", "http://a1"), ("b", "http://b1")],
    ));
    let merged = Merge::new().provider(source.clone()).start();
    ready(&merged).await;
    tokio::time::sleep(Duration::from_secs(30)).await;

    let mut bad = simple(
        &[("r", "a"), ("s", "b"), ("t", "b")],
        &[("a", "htp:/x"), ("b", "http://b2"), ("new", "htp:/x")],
    );
    bad.routes[1].r#match.path = Some("/{unclosed".to_owned());
    source.update(bad.clone());
    let state = settled(&merged).await;
    assert_eq!(
        serving(&state),
        ["r→a", "s→b", "t→b", "a=http://a1", "b=http://b2"]
    );
    let path = |state: &MergedState| {
        let route = state.snapshot.route(&"s".into()).unwrap();
        route.config().r#match.path.clone()
    };
    assert_eq!(path(&state).as_deref(), Some("/s"));
    assert_eq!(
        kept(&state),
        [
            "the cluster `a` cannot serve as it is now; its last known good form, accepted 30 s before, continues to serve",
            "the route `s` cannot serve as it is now; its last known good form, accepted 30 s before, continues to serve",
        ]
    );
    assert!(
        state
            .problems
            .iter()
            .any(|p| p.problem.pointer.starts_with("/Clusters/new/"))
    );

    // It stays like this through further updates, and its report stays the same.
    tokio::time::sleep(Duration::from_secs(30)).await;
    bad.clusters[1].destinations[0].address = "http://b3".to_owned();
    source.update(bad);
    let later = settled(&merged).await;
    assert!(serving(&later).contains(&"a=http://a1".to_owned()));
    assert!(serving(&later).contains(&"b=http://b3".to_owned()));
    assert_eq!(kept(&later), kept(&state));

    // Items missing from the provider's list are removed.
    source.update(simple(&[("s", "b")], &[("b", "http://b3")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["s→b", "b=http://b3"]);
    assert!(state.problems.is_empty());
    // And is not remembered.
    source.update(simple(
        &[("s", "b")],
        &[("b", "http://b3"), ("a", "htp:/x")],
    ));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["s→b", "b=http://b3"]);
    assert!(kept(&state).is_empty());
}

/// A route whose cluster was removed keeps its form, and so does a cluster that no route names.
#[tokio::test(start_paused = true)]
async fn each_item_is_kept_on_its_own() {
    let source = isolated(simple(&[("r", "a")], &[("a", "http://a")]));
    let merged = Merge::new().provider(source.clone()).start();
    ready(&merged).await;
    let mut bad = simple(&[("r", "a")], &[("b", "http://b")]);
    bad.routes[0].r#match.path = Some("/{unclosed".to_owned());
    source.update(bad);
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["r→a", "b=http://b"]);
}

#[tokio::test(start_paused = true)]
async fn a_prefixed_provider_keeps_its_items_too() {
    let source = isolated(simple(&[("r", "a")], &[("a", "http://a1")]));
    let merged = Merge::new()
        .source(MergeSource::new(source.clone()).with_prefix("p-"))
        .start();
    ready(&merged).await;
    source.update(simple(&[("r", "a")], &[("a", "htp:/x")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["p-r→p-a", "p-a=http://a1"]);
}

/// A cluster with a wrong setting, at this address.
fn misconfigured(address: &str) -> ProxyConfig {
    let mut config = simple(&[("r", "a")], &[("a", address)]);
    config.clusters[0].load_balancing_policy = Some("Nonsense".to_owned());
    config
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_turns_bad_keeps_its_settings_and_no_address() {
    let source = isolated(simple(&[("r", "a")], &[("a", "http://a1")]));
    let merged = Merge::new().provider(source.clone()).start();
    ready(&merged).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    source.update(misconfigured("http://a2"));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["r→a", "a=http://a2"]);
    let told = [
        "the cluster `a` cannot serve as it is now; its last known good settings, accepted 30 s before, continue to serve with its current destinations",
    ];
    assert_eq!(kept(&state), told);
    // The instances move on, and nothing new is reported.
    source.update(misconfigured("http://a3"));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["r→a", "a=http://a3"]);
    assert_eq!(kept(&state), told);
    // None of its addresses can be used: then the last ones are better than none.
    source.update(misconfigured("htp:/x"));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["r→a", "a=http://a3"]);
    assert!(kept(&state)[0].contains("its last known good form"));
}

/// Rejects clusters with this policy, independent of their addresses.
struct NoRandom;

#[async_trait]
impl ConfigValidator for NoRandom {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let clusters = candidate.config.clusters.iter();
        clusters
            .filter(|(_, cluster)| cluster.load_balancing_policy.as_deref() == Some("Random"))
            .map(|(id, _)| Problem::error(pointer_to("/Clusters", id.as_str()), "forbidden", "no"))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn an_objection_to_settings_is_none_to_addresses() {
    let with = |policy: &str, address| {
        let mut config = simple(&[], &[("a", address)]);
        config.clusters[0].load_balancing_policy = Some(policy.to_owned());
        config
    };
    let source = isolated(with("RoundRobin", "http://a1"));
    let forbidden = Forbidden::default();
    forbidden.0.lock().push("http://a3");
    let merged = Merge::new()
        .provider(source.clone())
        .validator(NoRandom)
        .validator(forbidden)
        .start();
    ready(&merged).await;
    source.update(with("Random", "http://a2"));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://a2"]);
    assert!(kept(&state)[0].contains("with its current destinations"));
    // Its settings and its address are objected to.
    source.update(with("Random", "http://a3"));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://a2"]);
    source.update(with("FirstAlphabetical", "http://a4"));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://a4"]);
    assert!(state.problems.is_empty());
}

/// Objects to clusters with one of these addresses.
#[derive(Clone, Default)]
struct Forbidden(Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl ConfigValidator for Forbidden {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let forbidden = self.0.lock();
        let clusters = candidate.config.clusters.iter();
        clusters
            .filter(|(_, cluster)| forbidden.contains(&&*cluster.destinations[0].address))
            // Twice, as several rules may be broken at once.
            .flat_map(|(id, _)| [id, id])
            .map(|id| Problem::error(pointer_to("/Clusters", id.as_str()), "forbidden", "no"))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn an_objection_to_an_update_leaves_the_item_as_it_was() {
    let source = isolated(simple(&[], &[("a", "http://a1"), ("b", "http://b1")]));
    let validator = Forbidden::default();
    validator.0.lock().extend(["http://a2", "http://c"]);
    let merged = Merge::new()
        .provider(source.clone())
        .validator(validator.clone())
        .start();
    ready(&merged).await;
    source.update(simple(
        &[],
        &[("a", "http://a2"), ("b", "http://b2"), ("c", "http://c")],
    ));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://a1", "b=http://b2"]);
    assert_eq!(kept(&state).len(), 1);
    assert!(codes(&state).contains(&"forbidden"));

    // Another update later, the held form is still there; then it is right.
    source.update(simple(&[], &[("a", "http://a2"), ("b", "http://b3")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://a1", "b=http://b3"]);
    source.update(simple(&[], &[("a", "http://a3"), ("b", "http://b3")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://a3", "b=http://b3"]);
    assert!(state.problems.is_empty());

    // An objection to the very form that serves is an objection to its serving.
    validator.0.lock().push("http://a3");
    source.update(simple(&[], &[("a", "http://a3"), ("b", "http://b4")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["b=http://b4"]);
}

/// Fails at the second call about the cluster `a`, by panic or by error.
struct Once(AtomicUsize, bool);

impl ConfigFilter for Once {
    fn cluster(
        &self,
        _: &FilterContext<'_>,
        id: &ClusterId,
        _: &mut ClusterConfig,
    ) -> Result<(), Problem> {
        if *id == "a" && self.0.fetch_add(1, Ordering::Relaxed) == 1 {
            assert!(!self.1, "as told");
            return Err(Problem::error("", "refused", "not now"));
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_fails_once_takes_nothing_and_is_tried_again() {
    for panics in [true, false] {
        for strictness in [Strictness::Isolated, Strictness::AllOrNothing] {
            let source = provider(
                "one",
                simple(&[], &[("a", "http://a1"), ("b", "http://b1")]),
            );
            let source = source.strictness(strictness);
            let merged = Merge::new()
                .provider(source.clone())
                .filter(Once(AtomicUsize::new(0), panics))
                .start();
            ready(&merged).await;
            source.update(simple(&[], &[("a", "http://a2"), ("b", "http://b2")]));
            let state = settled(&merged).await;
            let b = match strictness {
                Strictness::Isolated => "b=http://b2",
                Strictness::AllOrNothing => "b=http://b1",
            };
            assert_eq!(serving(&state), ["a=http://a1", b]);
            assert!(!state.problems.is_empty());
            tokio::time::sleep(Duration::from_secs(15)).await;
            let state = merged.state();
            assert_eq!(serving(&state), ["a=http://a2", "b=http://b2"]);
            assert!(state.problems.is_empty(), "{:?}", state.problems);
        }
    }
}

/// A provider that does not set the revision of its configuration.
struct Unnamed(watch::Sender<Arc<ProviderState>>);

impl ConfigProvider for Unnamed {
    fn name(&self) -> &str {
        "unnamed"
    }

    fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>> {
        self.0.subscribe()
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_without_a_revision_gets_one() {
    let state = |address| {
        let mut state = ProviderState::waiting();
        state.config = Some(Arc::new(simple(&[], &[("a", address)])));
        Arc::new(state)
    };
    let source = Arc::new(Unnamed(watch::Sender::new(state("http://1"))));
    let merged = Merge::new().provider(Arc::clone(&source)).start();
    assert_eq!(serving(&*ready(&merged).await), ["a=http://1"]);
    source.0.send_replace(state("http://2"));
    assert_eq!(serving(&*settled(&merged).await), ["a=http://2"]);
    let report = &merged.providers()[0];
    assert!(report.revision.is_some());
    assert_eq!(report.revision, report.serving_revision);
}
