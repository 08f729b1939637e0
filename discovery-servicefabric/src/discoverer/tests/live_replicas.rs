//! Replicas are followed while the labels of their service are wrong.

use discovery_core::{LabelsParser, Runner, ServiceOutcome};
use proxy_model::Problem;

use super::*;
use crate::labels::{ParsedService, YarpLabels};
use crate::service::ServiceDescription;

#[tokio::test(start_paused = true)]
async fn a_wrong_label_freezes_no_address() {
    let cluster = one_service(&LABELS, &[(1, "https://a:1"), (2, "https://a:2")]);
    let running = Running::start(&discoverer(&cluster));
    running.report(1).await;
    assert_eq!(
        addresses_in(&running.config()),
        ["https://a:1/", "https://a:2/"]
    );

    edit(&cluster, &WRONG, &[(3, "https://b:3"), (4, "https://b:4")]);
    let report = after_a_while(&running).await;
    assert_eq!(
        addresses_in(&running.config()),
        ["https://b:3/", "https://b:4/"]
    );
    let ServiceOutcome::Quarantined {
        last_known_good_age: Some(labels),
        destinations_age: Some(replicas),
    } = report.services[0].outcome
    else {
        panic!("{report:?}");
    };
    assert!(labels > replicas, "{labels:?} {replicas:?}");
    assert_eq!(running.config().routes[0].order, None);

    // The next fail-over is seen as fast as ever.
    edit(&cluster, &WRONG, &[(5, "https://c:5")]);
    let now = running.provider.state().status.cycles;
    running.report(now + 2).await;
    assert_eq!(addresses_in(&running.config()), ["https://c:5/"]);
    // Known to be empty.
    edit(&cluster, &WRONG, &[]);
    let now = running.provider.state().status.cycles;
    running.report(now + 2).await;
    assert_eq!(running.config().routes.len(), 1);
    assert!(addresses_in(&running.config()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_told_that_labels_are_old_and_replicas_are_not() {
    let cluster = one_service(&LABELS, &[(1, "https://a:1")]);
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    edit(&cluster, &WRONG, &[(2, "https://b:2")]);
    let report = after_a_while(&running).await;
    let reports = discoverer.health_reports(&report);
    let text = &reports[0].information.description;
    assert!(text.starts_with("What serves: labels of "), "{text}");
    assert!(
        text.contains(
            " ago, replicas of 0 s ago. The service is served by its last known good labels"
        ),
        "{text}"
    );
}

/// A parser that rejects everything while the flag is set.
struct Refusing;

impl LabelsParser<ServiceDescription, ParsedService> for Refusing {
    fn parse(&self, _: &str, service: &ServiceDescription) -> ParsedService {
        let mut parsed = YarpLabels::default().parse(&service.name, service);
        if service.labels.contains_key("YARP.Routes.r1.Order") {
            parsed.config = None;
            parsed.problems = Problem::error("", "unknown", "it is not understood").into();
        }
        parsed
    }
}

#[tokio::test(start_paused = true)]
async fn labels_that_say_nothing_at_all_freeze_no_address() {
    let cluster = one_service(&LABELS, &[(1, "https://a:1")]);
    let discoverer = ServiceFabric::new(cluster.clone())
        .parser(Refusing)
        .discoverer();
    let running = Running {
        provider: Runner::new(discoverer.clone())
            .options(discoverer.runner_options())
            .start(),
    };
    running.report(1).await;
    edit(&cluster, &WRONG, &[(2, "https://b:2")]);
    after_a_while(&running).await;
    assert_eq!(addresses_in(&running.config()), ["https://b:2/"]);

    // An extension that is not XML reveals nothing either.
    cluster.edit(|contents| {
        contents.service_types.clear();
        contents.service_type_with(
            "T",
            "1",
            "S",
            Some(vec![("YARP-preview", "<Labels".to_owned())]),
        );
        contents.instances("p", &[(3, "https://c:3")]);
    });
    after_a_while(&running).await;
    assert_eq!(addresses_in(&running.config()), ["https://c:3/"]);
    assert_eq!(running.provider.state().status.quarantined.len(), 1);
    cluster.edit(|contents| {
        contents.instances("p", &[(4, "https://d:4")]);
    });
    let now = running.provider.state().status.cycles;
    running.report(now + 2).await;
    assert_eq!(addresses_in(&running.config()), ["https://d:4/"]);
}
