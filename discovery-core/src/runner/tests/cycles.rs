//! Tests of publication by cycles.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use proxy_model::{Problem, Problems};

use super::*;
use crate::discovery::{Discovery, LabelledService};
use crate::filter::FilterContext;
use crate::labels::Parsed;
use crate::report::ServiceOutcome;
use crate::validator::{Candidate, Scope};

#[tokio::test(start_paused = true)]
async fn a_successful_answer_is_published() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("b", "http://b"), service("a", "http://a")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    assert!(provider.state().config.is_none());
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    assert_eq!(state.status.state, SourceState::Live);
    assert_eq!(state.status.changes, 1);
    assert!(state.problems.is_empty());
    assert_eq!(provider.name(), "script");
    assert!(provider.is_required());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_when_nothing_changed() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    source.answer([service("b", "http://b"), service("a", "http://a")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    let first = after_cycles(&source, &provider, 1).await;
    let mut states = provider.subscribe();
    states.mark_unchanged();
    let third = after_cycles(&source, &provider, 3).await;
    assert!(!states.has_changed().unwrap());
    assert_eq!(third.status.changes, 1);
    assert_eq!(third.status.cycles, 3);
    assert!(Arc::ptr_eq(
        first.config.as_ref().unwrap(),
        third.config.as_ref().unwrap()
    ));
    // The source was polled nevertheless.
    assert!(third.status.last_ok.unwrap().age() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_successful_empty_answer_empties() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    source.answer([]);
    let provider = Runner::new(source.clone()).options(options()).start();
    assert_eq!(
        serving(&*after_cycles(&source, &provider, 1).await),
        ["a=http://a"]
    );
    let state = after_cycles(&source, &provider, 2).await;
    assert!(state.config.as_ref().unwrap().clusters.is_empty());
    assert_eq!(state.status.changes, 2);
}

#[tokio::test(start_paused = true)]
async fn the_source_learns_what_became_of_its_services() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([
        broken("b"),
        service("a", "http://a"),
        DiscoveredService::labelled("c", [("other", "1")], [("d", DestinationConfig::default())]),
    ]);
    let provider = Runner::new(source.clone()).options(options()).start();
    let reports = source.wait_for_reports(2).await;
    let outcomes: Vec<_> = reports[0]
        .services
        .iter()
        .map(|service| (&*service.name, &service.outcome, service.problems.len()))
        .collect();
    let accepted = ServiceOutcome::Accepted {
        clusters: vec!["a".into()],
        routes: vec!["a".into()],
    };
    let quarantined = ServiceOutcome::Quarantined {
        destinations_age: None,
        last_known_good_age: None,
    };
    assert_eq!(
        outcomes,
        [
            ("a", &accepted, 0),
            ("b", &quarantined, 1),
            ("c", &ServiceOutcome::NotEnabled, 0)
        ]
    );
    assert!(reports[0].changed);
    assert!(!reports[1].changed);
    assert_eq!(reports[0].revision, reports[1].revision);
    let latest = provider.reports().borrow().clone().unwrap();
    assert_eq!(latest.services, reports[1].services);
}

#[tokio::test(start_paused = true)]
async fn an_answer_s_own_problems_are_shown() {
    let source = ScriptedDiscoverer::new("script");
    let answer = Discovery::new(vec![
        service("a", "http://a").with_problem(Problem::warning(
            "/tags/weight",
            "bad_weight",
            "no number",
        )),
        service("a", "http://other"),
    ]);
    source.answer_with(answer.with_problem(Problem::warning("", "old_agent", "an old agent")));
    let provider = Runner::new(source.clone()).options(options()).start();
    let state = after_cycles(&source, &provider, 1).await;
    let problems: Vec<_> = state
        .problems
        .iter()
        .map(|p| (&*p.pointer, &*p.code))
        .collect();
    assert_eq!(
        problems,
        [
            ("", "old_agent"),
            ("/Services/a", "duplicate_service"),
            ("/Services/a/tags/weight", "bad_weight")
        ]
    );
    assert_eq!(serving(&state), ["a=http://a"]);
}

#[tokio::test(start_paused = true)]
async fn asking_once_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("last-good");
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    let once = Runner::new(source.clone())
        .options(options().with_persist(path.clone()))
        .run_once()
        .await;
    assert_eq!(serving(&once.state), ["a=http://a"]);
    assert_eq!(once.report.unwrap().services.len(), 1);
    assert!(source.reports().is_empty());
    assert!(!path.exists());
}

/// Rejects services whose cluster has no `owner` in its metadata. Counts its calls.
struct Owned(Arc<AtomicUsize>);

#[async_trait]
impl ConfigValidator for Owned {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(matches!(
            candidate.scope,
            Scope::Service {
                source: "script",
                ..
            }
        ));
        match candidate.scope {
            Scope::Service {
                service: "hung", ..
            } => std::future::pending().await,
            Scope::Service {
                service: "panic", ..
            } => panic!("validator"),
            _ => {}
        }
        let unowned = candidate
            .config
            .clusters
            .values()
            .any(|c| c.metadata.is_none());
        let problem = || Problem::error("/Clusters", "unowned", "nobody owns the cluster");
        unowned.then(problem).into_iter().collect()
    }
}

fn owned(name: &str) -> DiscoveredService {
    let mut config = fragment(name, "http://owned");
    config.clusters[0].metadata = Some([("owner".to_owned(), "me".to_owned())].into());
    DiscoveredService::configured(name, config)
}

#[tokio::test(start_paused = true)]
async fn validators_judge_each_service_once_per_change() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([
        owned("a"),
        service("b", "http://b"),
        owned("hung"),
        owned("panic"),
    ]);
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = Runner::new(source.clone())
        .options(options().with_validate_timeout(Duration::from_secs(1)))
        .validator(Owned(Arc::clone(&asked)))
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["a=http://owned"]);
    let codes: Vec<_> = state.problems.iter().map(|p| &*p.code).collect();
    assert_eq!(
        codes,
        ["unowned", "validator_timed_out", "validator_failed"]
    );
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    after_cycles(&source, &provider, 2).await;
    // Those in quarantine are validated again, the good one is cached.
    assert_eq!(asked.load(Ordering::Relaxed), 7);
}

/// Repairs paths and rejects clusters called `bad`.
struct Repair;

impl ConfigFilter for Repair {
    fn cluster(
        &self,
        context: &FilterContext<'_>,
        id: &ClusterId,
        _: &mut ClusterConfig,
    ) -> Result<(), Problem> {
        assert_eq!(context.provider, "script");
        match id.as_str() {
            "bad" => Err(Problem::warning("/Metadata", "no", "not this one")),
            "panic" => panic!("filter"),
            _ => Ok(()),
        }
    }

    fn route(
        &self,
        _: &FilterContext<'_>,
        _: &proxy_model::RouteId,
        route: &mut RouteConfig,
        cluster: Option<&ClusterConfig>,
    ) -> Result<(), Problem> {
        if cluster.is_some() && route.r#match.path.as_deref() == Some("/{unclosed") {
            route.r#match.path = Some("/repaired".to_owned());
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn filters_run_before_services_are_judged() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([
        broken("a"),
        service("bad", "http://bad"),
        service("panic", "http://p"),
    ]);
    let provider = Runner::new(source.clone())
        .options(options())
        .filter(Repair)
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    let config = state.config.as_ref().unwrap();
    assert_eq!(config.routes.len(), 1);
    assert_eq!(config.routes[0].r#match.path.as_deref(), Some("/repaired"));
    assert_eq!(quarantined(&state), ["bad", "panic"]);
    let errors: Vec<_> = state.problems.errors().map(ToString::to_string).collect();
    assert_eq!(
        errors[0],
        "error at /Services/bad/Clusters/bad/Metadata: not this one"
    );
    assert_eq!(
        errors[1],
        "error at /Services/panic/Clusters/panic: a filter panicked: filter"
    );
}

/// A dialect that records its input, and panics on request.
struct Dialect(Arc<Mutex<Vec<String>>>);

impl LabelsParser for Dialect {
    fn parse(&self, service: &str, described: &LabelledService) -> Parsed {
        self.0.lock().push(service.to_owned());
        assert!(!described.labels.contains_key("panic"), "as told");
        Parsed::new(fragment(service, "http://dialect"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_parser_sees_a_service_when_it_changed_and_may_panic() {
    let source = ScriptedDiscoverer::new("script");
    let nowhere: [(&str, DestinationConfig); 0] = [];
    let labelled = |name: &str, label: &str| {
        DiscoveredService::labelled(name, [(label, "1")], nowhere.clone())
    };
    source.answer([labelled("a", "x"), labelled("b", "panic")]);
    source.answer([labelled("a", "x"), labelled("b", "x")]);
    source.answer([labelled("a", "y"), labelled("b", "x")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let provider = Runner::new(source.clone())
        .options(options())
        .labels(Dialect(Arc::clone(&seen)))
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["a=http://dialect"]);
    assert!(
        state
            .problems
            .to_string()
            .contains("the labels parser panicked: as told")
    );
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://dialect", "b=http://dialect"]);
    assert!(state.problems.is_empty());
    after_cycles(&source, &provider, 3).await;
    assert_eq!(*seen.lock(), ["a", "b", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_provider_ends_the_runner() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let mut states = provider.subscribe();
    drop(provider);
    let state = in_state(&mut states, SourceState::Stopped).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert!(state.status.next_cycle.is_none());
    let calls = source.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(source.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_while_the_driver_is_not_polled() {
    let source = ScriptedDiscoverer::new("script");
    let (provider, driver) = Runner::new(source.clone()).options(options()).into_parts();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(source.calls(), 0);
    let task = tokio::spawn(driver);
    after_cycles(&source, &provider, 1).await;
    task.abort();
    in_state(&mut provider.subscribe(), SourceState::Stopped).await;
}
