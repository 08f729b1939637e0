//! Sources that fail, answer in part, or have services in quarantine, as the API reports them.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{
    DiscoverError, DiscoverErrorKind, DiscoveredService, Discoverer, Discovery, Runner, Timestamp,
};
use parking_lot::Mutex;
use proxy_model::config::DestinationConfig;

use super::*;

type Answer = Result<Discovery, DiscoverError>;

/// A source with queued results. When the queue is empty it repeats its last successful one.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<(VecDeque<Answer>, Discovery)>>);

impl Scripted {
    fn next(&self, answer: Answer) {
        self.0.lock().0.push_back(answer);
    }
}

#[async_trait]
impl Discoverer for Scripted {
    fn name(&self) -> &str {
        "script"
    }

    async fn discover(&self) -> Answer {
        let mut script = self.0.lock();
        match script.0.pop_front() {
            Some(Ok(discovery)) => script.1 = discovery,
            Some(Err(error)) => return Err(error),
            None => {}
        }
        Ok(script.1.clone())
    }
}

/// A service by labels. An order that is no number quarantines it.
fn web(order: &str, addresses: &[&str]) -> Discovery {
    let labels = [
        ("proxy.enable", "true"),
        ("proxy.routes.main.path", "/web"),
        ("proxy.routes.main.order", order),
    ];
    let destinations = addresses.iter().map(|address| {
        let config = DestinationConfig {
            address: (*address).to_owned(),
            ..DestinationConfig::default()
        };
        (address.replace("http://", "d-"), config)
    });
    Discovery::new(vec![DiscoveredService::labelled(
        "web",
        labels,
        destinations,
    )])
}

struct Running {
    source: Scripted,
    admin: Admin,
    _driver: Box<dyn std::any::Any>,
}

/// Starts a proxy whose only source gives this result first.
async fn running(first: Answer) -> Running {
    running_after(vec![first]).await
}

async fn running_after(answers: Vec<Answer>) -> Running {
    let source = Scripted::default();
    for answer in answers {
        source.next(answer);
    }
    let provider = Runner::new(source.clone()).start();
    let source_of_merge = discovery_core::merge::MergeSource::new(provider).with_required(false);
    let merged = Merge::new().source(source_of_merge).start();
    merged.ready().await;
    let (proxy, driver) = Proxy::builder()
        .snapshots(merged.snapshots())
        .build()
        .unwrap();
    let driver = tokio::spawn(driver);
    let admin = Admin::builder(proxy).merged(Arc::new(merged)).build();
    tokio::time::sleep(Duration::from_secs(2)).await;
    Running {
        source,
        admin,
        _driver: Box::new(driver),
    }
}

impl Running {
    /// Waits for a few polls.
    async fn polled(&self) {
        tokio::time::sleep(Duration::from_secs(70)).await;
    }

    fn provider(&self) -> Value {
        json(&self.admin, "/api/v1/providers")["providers"][0].clone()
    }

    fn overview(&self) -> Value {
        json(&self.admin, "/api/v1/overview")
    }

    fn concern(&self, kind: &str) -> Value {
        let overview = self.overview();
        let concerns = overview["concerns"].as_array().unwrap();
        let mut of_kind = concerns.iter().filter(|one| one["kind"] == kind);
        of_kind.next().cloned().unwrap_or_default()
    }

    /// The state that decides the colour of the source on the page.
    fn colour(&self) -> String {
        let state = &self.overview()["flow"]["providers"][0]["state"];
        state.as_str().unwrap().to_owned()
    }

    fn sentence(&self) -> String {
        self.overview()["sentence"].as_str().unwrap().to_owned()
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The ages are those of the rules and of the destinations, which have moved meanwhile.
#[tokio::test(start_paused = true)]
async fn a_quarantined_service_is_listed_with_both_ages_and_its_reason() {
    let running = running(Ok(web("7", &["http://127.0.0.1:1"]))).await;
    assert_eq!(running.provider()["quarantined"], serde_json::json!([]));
    assert_eq!(running.colour(), "healthy");
    running.source.next(Ok(web("abc", &["http://127.0.0.1:2"])));
    running.polled().await;
    tokio::time::sleep(Duration::from_secs(12 * 60)).await;
    let provider = running.provider();
    assert_eq!(provider["state"], "live");
    let quarantined = provider["quarantined"].as_array().unwrap();
    assert_eq!(quarantined.len(), 1);
    let service = &quarantined[0];
    assert_eq!(service["service"], "web");
    let reason = service["reason"].as_str().unwrap();
    assert!(reason.contains("proxy.routes.main.order"), "{reason}");
    let rules = number(&service["last_good_age"]);
    assert!((12.0 * 60.0..14.0 * 60.0).contains(&rules), "{rules}");
    let destinations = number(&service["destinations_age"]);
    assert!((0.0..40.0).contains(&destinations), "{destinations}");
    let expected = format!(
        "rules of {} minutes ago, destinations of {} s ago",
        (rules / 60.0).floor(),
        destinations.floor()
    );
    assert_eq!(service["serves"], expected);
    let concern = running.concern("service");
    assert_eq!(
        (&concern["id"], &concern["state"]),
        (&"web".into(), &"degraded".into())
    );
    let detail = concern["detail"].as_str().unwrap();
    assert!(detail.starts_with(&expected), "{detail}");
    assert_eq!(running.colour(), "degraded");

    // A source that rejects the requests then freezes the destinations, and says so.
    for _ in 0..50 {
        let forbidden = DiscoverError::rejected("GET /services: 403 Forbidden");
        running.source.next(Err(forbidden));
    }
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    let service = running.provider()["quarantined"][0].clone();
    let destinations = number(&service["destinations_age"]);
    assert!(destinations > 4.0 * 60.0, "{destinations}");
    let serves = service["serves"].as_str().unwrap();
    assert!(serves.ends_with("minutes ago"), "{serves}");
    assert!(
        running.sentence().starts_with(
            "1 source rejects the request, its last known good configuration serves: script (GET /services: 403 Forbidden)"
        ),
        "{}",
        running.sentence()
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_never_good_is_down_and_left_out() {
    let running = running(Ok(web("abc", &["http://127.0.0.1:1"]))).await;
    let service = running.provider()["quarantined"][0].clone();
    assert_eq!(service["serves"], "nothing serves");
    assert_eq!(service["last_good_age"], Value::Null);
    assert_eq!(service["destinations_age"], Value::Null);
    assert_eq!(running.concern("service")["state"], "down");
    assert_eq!(
        running.sentence(),
        "1 service is left out because of its description: web of script; \
         1 mistake in the configuration: /Services/web/proxy.routes.main.order of script."
    );
}

/// The words of the log, the overview and the list of providers come from one place, for each kind of failure and
/// whether or not something serves.
#[tokio::test(start_paused = true)]
async fn a_source_that_fails_is_told_alike_everywhere() {
    type Make = fn(&'static str) -> DiscoverError;
    let kinds: [(Make, &str); 3] = [
        (DiscoverError::transient, "source cannot be read"),
        (DiscoverError::permanent, "source cannot be read"),
        (DiscoverError::rejected, "source rejects the request"),
    ];
    for (make, expected) in kinds {
        for serves in [true, false] {
            let error = || make("GET /x: 401 Unauthorized");
            let good = serves.then(|| Ok(web("7", &["http://127.0.0.1:1"])));
            let errors = (0..50).map(|_| Err(error()));
            let running = running_after(good.into_iter().chain(errors).collect()).await;
            running.polled().await;
            let provider = running.provider();
            assert_eq!(provider["state"], "failing");
            assert_eq!(provider["last_error"], "GET /x: 401 Unauthorized");
            let outage = error().kind().outage(1, serves);
            assert!(outage.starts_with(expected), "{outage}");
            let condition = provider["condition"].as_str().unwrap();
            assert_eq!(condition, format!("the {outage}"));
            let sentence = running.sentence();
            assert!(
                sentence.starts_with(&format!("1 {outage}: script")),
                "{sentence}"
            );
            let is_named = sentence.contains("401 Unauthorized");
            assert_eq!(is_named, expected.contains("rejects"), "{sentence}");
            let concern = running.concern("source");
            assert_eq!(concern["state"], "failing");
            assert_eq!(running.colour(), "failing");
            assert_eq!(concern["detail"], "GET /x: 401 Unauthorized");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_answers_in_part_is_degraded_with_the_age_of_its_oldest_answer() {
    for (kind, expected) in [
        (
            DiscoverErrorKind::Transient,
            "1 source answers in part, older answers stand in for the rest: script.",
        ),
        (
            DiscoverErrorKind::Rejected,
            "1 source rejects a part of the requests, older answers stand in for the rest: \
             script (GET /x: 403 Forbidden).",
        ),
    ] {
        let running = running(Ok(web("7", &["http://127.0.0.1:1"]))).await;
        assert!(running.sentence().starts_with("All is well"));
        assert_eq!(running.provider()["condition"], Value::Null);
        let since = Timestamp::ago(Duration::from_secs(600));
        let part = web("7", &["http://127.0.0.1:1"]);
        let part = part.outdated(since, kind, "GET /x: 403 Forbidden");
        running.source.next(Ok(part));
        running.polled().await;
        let provider = running.provider();
        assert_eq!(provider["state"], "partial");
        assert!(number(&provider["age"]) >= 600.0, "{provider}");
        assert_eq!(provider["last_error"], "GET /x: 403 Forbidden");
        let condition = provider["condition"].as_str().unwrap();
        assert_eq!(condition, format!("the {}", kind.partial_outage(1)));
        let concern = running.concern("source");
        assert_eq!(concern["state"], "degraded");
        assert_eq!(concern["detail"], "GET /x: 403 Forbidden");
        assert_eq!(running.sentence(), expected);
        assert_eq!(running.overview()["state"], "degraded");
        assert_eq!(running.colour(), "degraded");
        // It ends with the next whole answer.
        running.source.next(Ok(web("7", &["http://127.0.0.1:1"])));
        running.polled().await;
        assert!(running.sentence().starts_with("All is well"));
        assert_eq!(running.provider()["condition"], Value::Null);
        assert_eq!(running.concern("source"), Value::Null);
        assert_eq!(running.colour(), "healthy");
    }
}

/// Instances of which none can be used: 503 for everybody, although the description is right.
#[tokio::test(start_paused = true)]
async fn a_service_without_a_usable_address_is_down_before_a_request_tells() {
    let with = |addresses: &[&str]| {
        let mut discovery = web("7", addresses);
        let problem = proxy_model::Problem::warning("", "no_usable", "no replica is usable");
        let service = discovery.services.remove(0);
        discovery
            .services
            .push(service.with_unusable(problem.into()));
        discovery
    };
    let running = running(Ok(with(&[]))).await;
    let service = running.provider()["quarantined"][0].clone();
    assert_eq!(service["serves"], "rules of 2 s ago, no destination");
    assert_eq!(service["reason"], "no replica is usable");
    assert_eq!(service["destinations_age"], Value::Null);
    assert_eq!(running.concern("service")["state"], "down");
    assert_eq!(
        running.sentence(),
        "1 service has no destination that can be used: web of script."
    );
    // A wrong label hides neither: nothing serves requests, whatever the cause.
    let mut wrong = with(&[]);
    let service = web("abc", &[]).services.remove(0);
    let problem = proxy_model::Problem::warning("", "no_usable", "no replica is usable");
    wrong.services = vec![service.with_unusable(problem.into())];
    running.source.next(Ok(wrong));
    running.polled().await;
    let service = running.provider()["quarantined"][0].clone();
    let serves = service["serves"].as_str().unwrap();
    assert!(serves.ends_with(" ago, no destination"), "{serves}");
    assert_eq!(service["destinations_age"], Value::Null);
    assert_eq!(running.concern("service")["state"], "down");
    let sentence = running.sentence();
    assert!(
        sentence.starts_with("1 service has no destination that can be used: web of script; "),
        "{sentence}"
    );
    // Without any instance, the sentence claims nothing about addresses, and names the place of the mistake.
    running.source.next(Ok(web("abc", &[])));
    running.polled().await;
    assert_eq!(running.concern("service")["state"], "down");
    let sentence = running.sentence();
    assert!(
        sentence.starts_with("1 service has no destination: web of script; "),
        "{sentence}"
    );
    assert!(sentence.contains("/Services/web/"), "{sentence}");
    // Another cluster of the service may have destinations.
    running.source.next(Ok(with(&["http://127.0.0.1:1"])));
    running.polled().await;
    assert_eq!(running.concern("service")["state"], "degraded");
    running.source.next(Ok(web("7", &["http://127.0.0.1:1"])));
    running.polled().await;
    assert_eq!(running.provider()["quarantined"], serde_json::json!([]));
    assert!(running.sentence().starts_with("All is well"));
}
