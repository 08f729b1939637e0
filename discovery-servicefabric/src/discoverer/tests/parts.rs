//! Tests of parts that are replaced, that fail, and that report the reason.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{LabelsParser, ServiceOutcome};
use parking_lot::{Condvar, Mutex};
use proxy_model::{Problem, Problems, Severity};
use testkit::time::eventually;

use super::super::{Decision, Verdict};
use super::*;
use crate::calls::{CallError, ClusterCalls};
use crate::extension::{
    DeclaredTypes, ExtensionLabels, LabelledBy, LabelsProvider, OptIn, ServiceLabels,
};
use crate::labels::{ParsedService, YarpLabels};
use crate::model::ServiceType;
use crate::service::ServiceDescription;
use crate::testing::labels_xml;

/// Counts services, and panics at one.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>, Option<&'static str>);

impl LabelsParser<ServiceDescription, ParsedService> for Counting {
    fn parse(&self, _: &str, service: &ServiceDescription) -> ParsedService {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert_ne!(Some(&*service.name), self.1, "as the test says");
        YarpLabels::default().parse(&service.name, service)
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_did_not_change_is_not_parsed_again() {
    let cluster = cluster();
    let parser = Counting::default();
    let discoverer = ServiceFabric::new(cluster.clone())
        .parser(parser.clone())
        .discoverer();
    let parsed = || parser.0.swap(0, Ordering::Relaxed);
    let first = cycle(&discoverer).await;
    assert_eq!(parsed(), 4);
    assert_eq!(next(&discoverer).await, first);
    assert_eq!(parsed(), 0);
    cluster.edit(|contents| {
        contents.instances("a1", &[(7, "https://x:1")]);
    });
    next(&discoverer).await;
    assert_eq!(parsed(), 1);
    // Full refreshes read everything again, and nothing has changed.
    for _ in 0..12 {
        next(&discoverer).await;
    }
    assert_eq!(parsed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_parser_that_panics_fails_its_service_alone() {
    let cluster = cluster();
    let parser = Counting(Arc::default(), Some("fabric:/A/S2"));
    let discoverer = ServiceFabric::new(cluster.clone())
        .parser(parser)
        .discoverer();
    let running = Running::start(&discoverer);
    let report = running.report(1).await;
    assert_eq!(running.served().len(), 3);
    let bad = &report.services[1];
    assert_eq!(&*bad.name, "fabric:/A/S2");
    assert!(matches!(
        bad.outcome,
        ServiceOutcome::Quarantined {
            last_known_good_age: None,
            ..
        }
    ));
    let problem = bad.problems.iter().next().unwrap();
    assert_eq!(problem.code, "parser_failed");
    assert!(problem.message.contains("as the test says"), "{problem}");
}

/// Blocks until it is released.
#[derive(Default)]
struct Held {
    has_begun: AtomicBool,
    is_free: Mutex<bool>,
    freed: Condvar,
}

impl LabelsParser<ServiceDescription, ParsedService> for Held {
    fn parse(&self, _: &str, service: &ServiceDescription) -> ParsedService {
        self.has_begun.store(true, Ordering::Relaxed);
        let mut is_free = self.is_free.lock();
        while !*is_free {
            self.freed.wait(&mut is_free);
        }
        YarpLabels::default().parse(&service.name, service)
    }
}

#[tokio::test]
async fn a_parser_that_hangs_holds_one_thread_and_no_more() {
    let held = Arc::new(Held::default());
    let discoverer = ServiceFabric::new(cluster())
        .parser(Arc::clone(&held))
        .discoverer();
    let begun = eventually("the parser has begun", async || {
        held.has_begun.load(Ordering::Relaxed)
    });
    tokio::select! {
        _ = discoverer.discover() => panic!("the parser hangs"),
        () = begun => {}
    }
    let error = discoverer.discover().await.unwrap_err();
    assert!(error.to_string().contains("earlier cycle"), "{error}");
    *held.is_free.lock() = true;
    held.freed.notify_all();
    eventually("the thread ends", async || {
        discoverer.discover().await.is_ok()
    })
    .await;
}

/// Labels from nowhere but the code.
struct Fixed;

#[async_trait]
impl LabelsProvider for Fixed {
    async fn declared(
        &self,
        _: &dyn ClusterCalls,
        _: &str,
        _: &str,
        types: &[ServiceType],
    ) -> Result<DeclaredTypes, CallError> {
        let all = types.iter().map(|of| {
            let name = of.service_type_description.service_type_name.clone();
            (name, Arc::default())
        });
        Ok(all.collect())
    }

    async fn labels(
        &self,
        _: &dyn ClusterCalls,
        service: LabelledBy<'_>,
    ) -> Result<ServiceLabels, CallError> {
        assert_ne!(service.service, "fabric:/B/S1", "as the test says");
        let labels = LABELS.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(ServiceLabels {
            labels: Arc::new(labels.into()),
            enabled: OptIn::Yes,
            ..ServiceLabels::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn labels_may_come_from_elsewhere_and_their_panic_fails_one_service_alone() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents.stateless("fabric:/A/P", "Plain", [("p", vec![(1, "https://p:1")])]);
    });
    let discoverer = ServiceFabric::new(cluster).labels(Fixed).discoverer();
    let found = addresses(&cycle(&discoverer).await);
    assert_eq!(found["fabric:/A/P"], Some(vec!["https://p:1/".to_owned()]));
    assert_eq!(found["fabric:/B/S1"], None);
    assert_eq!(found.len(), 5);
}

/// Panics over one type, from the second time on.
#[derive(Default)]
struct Fickle(AtomicUsize);

#[async_trait]
impl LabelsProvider for Fickle {
    async fn declared(
        &self,
        calls: &dyn ClusterCalls,
        application_type: &str,
        version: &str,
        types: &[ServiceType],
    ) -> Result<DeclaredTypes, CallError> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(before < 1 || version != "1", "as the test says");
        let labels = ExtensionLabels::new();
        labels
            .declared(calls, application_type, version, types)
            .await
    }

    async fn labels(
        &self,
        calls: &dyn ClusterCalls,
        service: LabelledBy<'_>,
    ) -> Result<ServiceLabels, CallError> {
        ExtensionLabels::new().labels(calls, service).await
    }
}

#[tokio::test(start_paused = true)]
async fn labels_that_cannot_be_read_again_stay_as_they_were() {
    let options = ServiceFabricOptions::default().with_full_refresh_period(Duration::from_secs(1));
    let discoverer = ServiceFabric::new(cluster())
        .labels(Fickle::default())
        .options(options)
        .discoverer();
    let first = cycle(&discoverer).await;
    let second = next(&discoverer).await;
    assert_eq!(second.services, first.services);
    let told = second.problems.iter().next().unwrap();
    assert_eq!(told.code, "stale_answer");
    assert!(told.message.contains("panicked"), "{told}");
}

fn decision<'a>(decisions: &'a [Decision], name: &str) -> (Verdict, &'a str) {
    let found = decisions.iter().find(|decision| &*decision.name == name);
    let found = found.unwrap_or_else(|| panic!("{name} in {decisions:?}"));
    let reason = found.reasons.first().map_or("", String::as_str);
    (found.verdict, reason)
}

#[tokio::test(start_paused = true)]
async fn it_is_told_why_something_is_served_or_not() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents
            .service_type("T", "1", "Off", [("YARP.Enable", "no")])
            .service_type("T", "1", "Typo", [("YARP.Enabel", "true")])
            .service_type(
                "T",
                "1",
                "Bad",
                [("YARP.Enable", "true"), ("YARP.Routes.r.Order", "first")],
            )
            .service_type_with(
                "T",
                "1",
                "Broken",
                Some(vec![("YARP", "<Labels".to_owned())]),
            )
            .application_type("U", "1", [])
            .application("fabric:/U", "U", "1", []);
        for of in ["Off", "Typo", "Bad", "Broken"] {
            contents.stateless(&format!("fabric:/A/{of}"), of, [(of, Vec::new())]);
        }
        contents.stateless("fabric:/A/Unread", "S", [("unread", Vec::new())]);
    });
    cluster.fail("replicas unread", crate::calls::CallErrorKind::Busy);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(1));
    let discoverer = with_options(&cluster, options);
    cycle(&discoverer).await;
    let told = discoverer.decisions();
    assert_eq!(told.left_out, 0);
    let told = told.decisions;
    let of = |name: &str| decision(&told, name);
    assert_eq!(
        of("fabric:/A/S1"),
        (Verdict::Served, "1 clusters with 1 destinations, 1 routes")
    );
    assert_eq!(
        of("fabric:/A/Off"),
        (Verdict::NotEnabled, "its label `YARP.Enable` is `no`")
    );
    assert_eq!(of("fabric:/A/Typo").0, Verdict::NotEnabled);
    let typo = told.iter().find(|d| &*d.name == "fabric:/A/Typo").unwrap();
    assert!(typo.reasons[1].contains("did you mean"), "{typo:?}");
    assert_eq!(of("fabric:/A/Bad").0, Verdict::Rejected);
    assert_eq!(of("fabric:/A/Broken").0, Verdict::Rejected);
    assert_eq!(
        of("fabric:/A/Unread"),
        (
            Verdict::NotRead,
            "the replicas of the partition unread could not be read: replicas unread: the test says so"
        )
    );
    assert_eq!(of("fabric:/U").0, Verdict::NoLabels);
    // Those that are not served come first.
    assert_eq!(told.last().unwrap().verdict, Verdict::Served);
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json[0]["verdict"], "not_read");
}

/// An extension without valid labels is diagnosed, and so is a misspelled opt-in. Nothing is reported to the cluster,
/// since its owners have not asked for the service to be served.
#[tokio::test(start_paused = true)]
async fn services_that_did_not_opt_in_have_diagnostics_and_no_health_report() {
    let cluster = cluster();
    let cases = [
        ("Text", "YARP.Enable=true".to_owned(), "no_labels"),
        ("Other", "<Settings/>".to_owned(), "no_labels"),
        (
            "Namespace",
            "<Labels><Label Key='YARP.Enable'>true</Label></Labels>".to_owned(),
            "labels_namespace",
        ),
        (
            "Key",
            labels_xml([("YARP.Enable", "true")]).replace("Key=", "key="),
            "missing_label_key",
        ),
        ("Typo", labels_xml([("YARP.Enabel", "true")]), "not_enabled"),
    ];
    cluster.edit(|contents| {
        for (name, value, _) in &cases {
            let extensions = Some(vec![("YARP-preview", value.clone())]);
            contents.service_type_with("T", "1", name, extensions);
            contents.stateless(&format!("fabric:/A/{name}"), name, [(*name, Vec::new())]);
        }
    });
    let discoverer = discoverer(&cluster);
    let discovery = cycle(&discoverer).await;
    let decisions = discoverer.decisions().decisions;
    for (name, _, code) in &cases {
        let name = format!("fabric:/A/{name}");
        let service = discovery.services.iter().find(|of| *of.name == *name);
        let service = service.expect("it is in the result");
        assert_eq!(service.content, ServiceContent::NotEnabled, "{name}");
        let problems: Vec<_> = service.problems.iter().collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].code, *code, "{name}");
        assert_eq!(problems[0].severity, Severity::Warning, "{name}");
        let decision = decisions.iter().find(|of| *of.name == *name).unwrap();
        assert_eq!(decision.verdict, Verdict::NotEnabled);
        assert_eq!(decision.reasons.len(), 2, "{decision:?}");
    }
    let once = discoverer.runner().run_once().await;
    let reports = discoverer.health_reports(once.report.as_deref().unwrap());
    let reported = reports.iter().map(|of| of.entity.to_string());
    let mut reported: Vec<_> = reported.collect();
    reported.sort();
    assert_eq!(
        reported,
        [
            "service A~S1",
            "service A~S2",
            "service B~S1",
            "service B~S2"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_runner_rejects_is_told_too() {
    let discoverer = discoverer(&cluster());
    let runner = discoverer.runner().validator(NoSecond);
    let running = Running {
        provider: runner.start(),
    };
    running.report(2).await;
    let told = discoverer.decisions().decisions;
    let (verdict, reason) = decision(&told, "fabric:/A/S2");
    assert_eq!(verdict, Verdict::Rejected);
    assert!(reason.contains("not this one"), "{reason}");
    assert_eq!(decision(&told, "fabric:/A/S1").0, Verdict::Served);
}

struct NoSecond;

#[async_trait]
impl discovery_core::ConfigValidator for NoSecond {
    async fn validate(&self, candidate: &discovery_core::Candidate<'_>) -> Problems {
        let mut clusters = candidate.config.clusters.keys();
        match clusters.any(|id| id.as_str().ends_with("A/S2")) {
            true => Problem::error("", "house_rule", "not this one").into(),
            false => Problems::new(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn labels_that_break_keep_what_served_before() {
    let cluster = cluster();
    let options = ServiceFabricOptions::default().with_full_refresh_period(Duration::from_secs(1));
    let discoverer = with_options(&cluster, options);
    let running = Running::start(&discoverer);
    running.report(1).await;
    let before = running.config();
    for (cycle, broken) in [
        (3, "<Labels".to_owned()),
        (
            5,
            labels_xml([("YARP.Enable", "true"), ("YARP.Enable", "true")]),
        ),
        (
            7,
            labels_xml([("YARP.Enable", "true"), ("YARP.Routes.r.Order", "x")]),
        ),
    ] {
        cluster.edit(|contents| {
            let types = contents.service_types.values_mut().flatten();
            for service_type in types {
                let description = &mut service_type.service_type_description;
                for extension in description.extensions.iter_mut().flatten() {
                    extension.value.clone_from(&broken);
                }
            }
        });
        let report = running.report(cycle).await;
        assert_eq!(running.config(), before);
        let quarantined = report.services.iter().filter(|service| {
            matches!(
                service.outcome,
                ServiceOutcome::Quarantined {
                    last_known_good_age: Some(_),
                    ..
                }
            )
        });
        assert_eq!(quarantined.count(), 4, "{broken}");
    }
}
