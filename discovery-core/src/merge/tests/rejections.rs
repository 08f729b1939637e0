//! Tests of rejected configurations: parts left out, or the whole rejected.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use proxy_model::{Problem, Problems, RouteId, pointer_to};

use super::*;
use crate::filter::FilterContext;
use crate::validator::{Candidate, Scope};

/// Two routes, of which the second cannot be compiled.
fn half_bad() -> ProxyConfig {
    let mut config = simple(&[("good", "c"), ("bad", "c")], &[("c", "http://c")]);
    config.routes[1].r#match.path = Some("/{unclosed".to_owned());
    config
}

#[tokio::test(start_paused = true)]
async fn bad_parts_are_left_out_of_isolated_providers() {
    let source = provider("script", half_bad()).strictness(Strictness::Isolated);
    let merged = Merge::new().provider(source).start();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["good→c", "c=http://c"]);
    assert_eq!(state.problems.len(), 1, "{:?}", state.problems);
    assert!(
        state.problems[0]
            .problem
            .pointer
            .starts_with("/Routes/bad/")
    );
    assert_eq!(state.problems[0].provider.as_deref(), Some("script"));
    assert!(merged.providers()[0].rejected_since.is_none());
}

/// E06: bad at start. There is nothing older to serve, so the merge is not ready.
#[tokio::test(start_paused = true)]
async fn a_strict_provider_that_is_bad_at_start_serves_nothing() {
    let file = provider("file", half_bad());
    let other = provider("other", simple(&[], &[("o", "http://o")]));
    let merged = Merge::new().provider(file.clone()).provider(other).start();
    let state = settled(&merged).await;
    assert!(!state.ready);
    assert_eq!(state.waiting_for, ["file".into()]);
    // The other provider serves nevertheless.
    assert_eq!(serving(&state), ["o=http://o"]);
    assert!(merged.providers()[0].rejected_since.is_some());

    file.update(simple(&[("good", "c")], &[("c", "http://c")]));
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["good→c", "c=http://c", "o=http://o"]);
    assert!(state.problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_strict_provider_that_becomes_bad_serves_on_as_before() {
    let before = simple(&[("good", "c")], &[("c", "http://before")]);
    let file = provider("file", before.clone());
    let other = provider("other", simple(&[], &[("o", "http://1")]));
    let merged = Merge::new()
        .provider(file.clone())
        .provider(other.clone())
        .start();
    ready(&merged).await;
    file.update(half_bad());
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["good→c", "c=http://before", "o=http://1"]);
    assert!(state.ready);
    assert_eq!(state.problems.len(), 1);
    let report = &merged.providers()[0];
    assert!(report.rejected_since.is_some());
    assert_ne!(report.revision, report.serving_revision);
    assert_eq!((report.routes, report.clusters), (1, 1));

    // It does not keep the others from changing.
    other.update(simple(&[], &[("o", "http://2")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["good→c", "c=http://before", "o=http://2"]);
    file.update(before);
    let state = settled(&merged).await;
    assert!(state.problems.is_empty());
    assert!(merged.providers()[0].rejected_since.is_none());
}

/// A filter that repairs a configuration that would be rejected.
struct Repair;

impl ConfigFilter for Repair {
    fn route(
        &self,
        context: &FilterContext<'_>,
        _: &RouteId,
        route: &mut RouteConfig,
        cluster: Option<&ClusterConfig>,
    ) -> Result<(), Problem> {
        assert_eq!(context.provider, "file");
        assert!(cluster.is_some());
        if route.r#match.path.as_deref() == Some("/{unclosed") {
            route.r#match.path = Some("/repaired".to_owned());
        }
        Ok(())
    }
}

/// Each configuration that is rejected as a whole counts once, however often the others change meanwhile.
#[tokio::test(start_paused = true)]
async fn each_rejection_is_counted_once() {
    let good = simple(&[("good", "c")], &[("c", "http://c")]);
    let file = provider("file", good.clone());
    let other = provider("other", simple(&[], &[("o", "http://1")]));
    let merged = Merge::new()
        .provider(file.clone())
        .provider(other.clone())
        .start();
    assert_eq!(ready(&merged).await.rejections, 0);
    file.update(half_bad());
    assert_eq!(settled(&merged).await.rejections, 1);
    other.update(simple(&[], &[("o", "http://2")]));
    assert_eq!(settled(&merged).await.rejections, 1);
    file.update(good);
    assert_eq!(settled(&merged).await.rejections, 1);
    file.update(half_bad());
    assert_eq!(settled(&merged).await.rejections, 2);
}

#[tokio::test(start_paused = true)]
async fn a_filter_repairs_a_broken_route() {
    let merged = Merge::new()
        .provider(provider("file", half_bad()))
        .filter(Repair)
        .start();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["good→c", "bad→c", "c=http://c"]);
    let route = state.snapshot.route(&"bad".into()).unwrap();
    assert_eq!(route.config().r#match.path.as_deref(), Some("/repaired"));
}

/// Rejects, or panics about, items of this name.
struct Picky;

impl ConfigFilter for Picky {
    fn cluster(
        &self,
        _: &FilterContext<'_>,
        id: &ClusterId,
        _: &mut ClusterConfig,
    ) -> Result<(), Problem> {
        assert_ne!(*id, "panic", "as told");
        if *id == "refused" {
            return Err(Problem::error("", "refused", "not this one"));
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_rejects_or_panics_rejects_the_item() {
    let clusters = simple(
        &[],
        &[
            ("a", "http://a"),
            ("refused", "http://r"),
            ("panic", "http://p"),
        ],
    );
    let isolated = provider("isolated", clusters.clone()).strictness(Strictness::Isolated);
    let merged = Merge::new().provider(isolated).filter(Picky).start();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert_eq!(state.problems.len(), 2);

    let merged = Merge::new()
        .provider(provider("strict", clusters))
        .filter(Picky)
        .start();
    assert!(!settled(&merged).await.ready);
}

/// Rejects routes and clusters by name. Counts its calls.
#[derive(Clone, Default)]
struct Objecting(Arc<AtomicUsize>);

#[async_trait]
impl ConfigValidator for Objecting {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert_eq!(candidate.scope, Scope::Merged);
        let mut problems = Problems::new();
        for id in candidate
            .config
            .routes
            .keys()
            .filter(|id| id.as_str().contains("bad"))
        {
            let pointer = pointer_to("/Routes", id.as_str()) + "/Match";
            problems.push(Problem::error(pointer, "objection", "a bad route"));
        }
        for id in candidate.config.clusters.keys() {
            match id.as_str() {
                "everything" => problems.push(Problem::error("", "objection", "nothing of it")),
                "odd" => problems.push(Problem::warning("/Clusters/odd", "odd", "an odd cluster")),
                "hang" => std::future::pending().await,
                "panic" => panic!("validator"),
                _ => {}
            }
        }
        problems
    }
}

#[tokio::test(start_paused = true)]
async fn a_validator_s_objection_leaves_the_item_out() {
    let config = simple(
        &[("r", "c"), ("bad/1", "c"), ("bad2", "c")],
        &[("c", "http://c"), ("odd", "http://o")],
    );
    let source = provider("script", config).strictness(Strictness::Isolated);
    let validator = Objecting::default();
    let merged = Merge::new()
        .provider(source)
        .validator(validator.clone())
        .start();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["r→c", "c=http://c", "odd=http://o"]);
    let found = problems(&state);
    assert_eq!(
        found.iter().filter(|p| p.contains("a bad route")).count(),
        2,
        "{found:?}"
    );
    assert!(
        state
            .problems
            .iter()
            .all(|p| p.provider.as_deref() == Some("script")),
        "{found:?}"
    );
    assert!(found.iter().any(|p| p.contains("an odd cluster")));
    assert_eq!(validator.0.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_validator_s_objection_sends_a_strict_provider_back() {
    let file = provider("file", simple(&[("r", "c")], &[("c", "http://1")]));
    let other = provider("other", simple(&[], &[("o", "http://1")]));
    let merged = Merge::new()
        .provider(file.clone())
        .provider(other.clone())
        .validator(Objecting::default())
        .start();
    ready(&merged).await;
    file.update(simple(&[("r", "c"), ("bad", "c")], &[("c", "http://2")]));
    other.update(simple(&[], &[("o", "http://2")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["r→c", "c=http://1", "o=http://2"]);
    assert_eq!(
        problems(&state),
        ["file: error at /Routes/bad/Match: a bad route"]
    );
    assert!(merged.providers()[0].rejected_since.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_objection_to_everything_rejects_the_change() {
    let one = provider("one", simple(&[], &[("a", "http://1")])).strictness(Strictness::Isolated);
    let merged = Merge::new()
        .provider(one.clone())
        .validator(Objecting::default())
        .start();
    ready(&merged).await;
    for (cluster, code) in [
        ("everything", "objection"),
        ("panic", "validator_failed"),
        ("hang", "validator_timed_out"),
    ] {
        one.update(simple(&[], &[("a", "http://2"), (cluster, "http://x")]));
        tokio::time::sleep(Duration::from_secs(15)).await;
        let state = merged.state();
        assert_eq!(serving(&state), ["a=http://1"], "{cluster}");
        assert_eq!(state.problems.len(), 1);
        assert_eq!(
            (
                state.problems[0].provider.as_deref(),
                &*state.problems[0].problem.code
            ),
            (None, code)
        );
    }
    one.update(simple(&[], &[("a", "http://2")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://2"]);
    assert!(state.problems.is_empty());
}

/// Does not respond the first time.
struct Slow(AtomicUsize);

#[async_trait]
impl ConfigValidator for Slow {
    async fn validate(&self, _: &Candidate<'_>) -> Problems {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            std::future::pending::<()>().await;
        }
        Problems::new()
    }
}

#[tokio::test(start_paused = true)]
async fn validators_that_did_not_answer_are_asked_again() {
    let one = provider("one", simple(&[], &[("a", "http://1")]));
    let merged = Merge::new()
        .provider(one)
        .validator(Slow(AtomicUsize::new(0)))
        .start();
    let begun = tokio::time::Instant::now();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["a=http://1"]);
    assert!(begun.elapsed() < Duration::from_secs(21));
}

/// Objects to one more item each time.
struct Insatiable;

#[async_trait]
impl ConfigValidator for Insatiable {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let last = candidate.config.clusters.keys().next_back();
        last.map(|id| Problem::error(pointer_to("/Clusters", id.as_str()), "no", "not this one"))
            .into_iter()
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_validator_that_is_never_content_is_stopped() {
    let names: Vec<String> = (0..100).map(|i| format!("c{i}")).collect();
    let clusters: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "http://c")).collect();
    let one = provider("one", simple(&[], &clusters)).strictness(Strictness::Isolated);
    let merged = Merge::new().provider(one).validator(Insatiable).start();
    let state = settled(&merged).await;
    assert!(!state.ready);
    assert!(serving(&state).is_empty());
    assert!(
        state
            .problems
            .iter()
            .any(|p| p.problem.code == "too_many_objections")
    );
}
