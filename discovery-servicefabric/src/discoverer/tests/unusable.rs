//! Replicas with addresses that no destination can have.

use discovery_core::{QuarantinedService, ServiceOutcome};

use super::*;
use crate::calls::CallErrorKind;
use crate::model::HealthState;

/// Addresses that are no destinations, and a part of the reason. Secrets in them are not repeated.
const UNUSABLE: [(&str, &str); 8] = [
    ("https://127.0.0.1:99999", "is not an absolute URL"),
    ("https://[::1", "is not an absolute URL"),
    ("https://a:1\r\nx: y", "is not an absolute URL"),
    ("https://u:hush@a:1", "with a user name or password"),
    ("https://+:443/", "of all addresses of its node"),
    ("https://0.0.0.0:443", "of all addresses of its node"),
    ("http://a:80", "`DiscoverInsecureHttpDestinations`"),
    ("", "is not an absolute URL"),
];

fn quarantined(running: &Running) -> Vec<QuarantinedService> {
    running.provider.state().status.quarantined.clone()
}

fn warnings(running: &Running) -> Vec<String> {
    let state = running.provider.state();
    state.problems.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn one_unusable_address_is_left_out_and_named_and_the_others_serve() {
    for (address, why) in UNUSABLE {
        let all = [(1, "https://a:1"), (2, address), (3, "https://c:3")];
        let cluster = one_service(&LABELS, &all);
        let running = Running::start(&discoverer(&cluster));
        running.report(1).await;
        let served = addresses_in(&running.config());
        assert_eq!(served, ["https://a:1/", "https://c:3/"], "{address}");
        assert!(quarantined(&running).is_empty(), "{address}");
        let warnings = warnings(&running);
        assert_eq!(warnings.len(), 1, "{address}: {warnings:?}");
        let warning = &warnings[0];
        assert!(
            warning.contains("1 of 3 replicas cannot be used: p/2: "),
            "{warning}"
        );
        assert!(warning.contains(why), "{warning}");
        assert!(!warning.contains("hush"), "{warning}");
    }
}

/// The cluster itself has withdrawn the earlier addresses, so they do not serve. The service reports that.
#[tokio::test(start_paused = true)]
async fn a_service_without_a_usable_address_is_listed_and_serves_at_no_earlier_one() {
    for (address, why) in UNUSABLE {
        let cluster = one_service(&LABELS, &[(1, "https://a:1"), (2, "https://b:2")]);
        let running = Running::start(&discoverer(&cluster));
        running.report(1).await;
        assert_eq!(addresses_in(&running.config()).len(), 2);
        cluster.edit(|contents| {
            contents.instances("p", &[(1, address), (2, address)]);
        });
        let report = after_a_while(&running).await;
        assert!(addresses_in(&running.config()).is_empty(), "{address}");
        assert_eq!(
            running.config().routes.len(),
            1,
            "requests get 503, not 404"
        );
        // The description is right: it is not one of quarantine.
        let outcome = &report.services[0].outcome;
        assert!(
            matches!(outcome, ServiceOutcome::Accepted { .. }),
            "{outcome:?}"
        );
        let listed = quarantined(&running);
        assert_eq!(listed.len(), 1, "{address}");
        assert_eq!(&*listed[0].service, "fabric:/A/Web");
        assert_eq!(listed[0].serves(), "rules of 0 s ago, no destination");
        let reasons = listed[0].problems.to_string();
        assert!(reasons.contains(why), "{reasons}");
        assert!(!reasons.contains("hush"), "{reasons}");
        assert_eq!(warnings(&running).len(), 1, "{:?}", warnings(&running));
        let since = listed[0].since;
        after_a_while(&running).await;
        assert_eq!(quarantined(&running)[0].since, since);

        // One usable address ends it.
        cluster.edit(|contents| {
            contents.instances("p", &[(1, address), (3, "https://c:3")]);
        });
        after_a_while(&running).await;
        assert_eq!(addresses_in(&running.config()), ["https://c:3/"]);
        assert!(quarantined(&running).is_empty(), "{address}");
    }
}

/// The primary alone has an address that cannot be used: writes get 503, and reads are served.
#[tokio::test(start_paused = true)]
async fn writes_without_a_destination_are_listed_and_reported_while_reads_serve() {
    let labels = [
        ("YARP.Enable", "true"),
        ("YARP.Routes.r1.Path", "/{**catch-all}"),
        ("YARP.Backend.ServiceFabric.RoleRouting", "Methods"),
    ];
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", labels)
            .application("fabric:/A", "T", "1", [])
            .stateful(
                "fabric:/A/Web",
                "S",
                [("p", vec![(1, "https://+:1"), (2, "https://b:2")])],
            );
    });
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    let report = running.report(1).await;
    assert!(matches!(
        report.services[0].outcome,
        ServiceOutcome::Accepted { .. }
    ));
    let listed = quarantined(&running);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0].serves(),
        "rules of 0 s ago, destinations of 0 s ago"
    );
    let reasons = listed[0].problems.to_string();
    assert!(reasons.contains("writes have no destination"), "{reasons}");
    let (state, text) = told(&discoverer, &report);
    assert_eq!(state, HealthState::Warning);
    assert!(
        text.starts_with("A part of the service has no destination; the rest is served.\n"),
        "{text}"
    );
    assert!(text.contains("writes have no destination"), "{text}");
    // Calls fail: the report names the outage and what was known before it.
    cluster.edit(|contents| {
        contents.instances("p", &[(1, "https://+:1"), (3, "https://c:3")]);
    });
    cluster.fail("replicas p", CallErrorKind::Busy);
    let now = running.provider.state().status.cycles;
    let report = running.report(now + 2).await;
    let (state, text) = told(&discoverer, &report);
    assert_eq!(state, HealthState::Warning);
    assert!(text.starts_with("What serves is "), "{text}");
    for part in [
        " The last known state of the service is used, since calls fail: ",
        "\nA part of the service has no destination; the rest is served.\n",
        "writes have no destination",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// The clusters of a listener that no label names count, too.
#[tokio::test(start_paused = true)]
async fn writes_without_a_destination_are_listed_at_a_listener_that_no_label_names() {
    let labels = [
        ("YARP.Enable", "true"),
        ("YARP.Routes.r1.Path", "/{**catch-all}"),
        ("YARP.Backend.ServiceFabric.RoleRouting", "Methods"),
        ("YARP.Backend.ServiceFabric.ListenerMode", "PerListener"),
        ("YARP.Backend.ServiceFabric.ListenerName", "web"),
    ];
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        let listening =
            |admin: &str| format!(r#"{{"Endpoints":{{"web":"https://h:1","admin":"{admin}"}}}}"#);
        let (first, second) = (listening("https://+:2"), listening("https://h:2"));
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", labels)
            .application("fabric:/A", "T", "1", [])
            .stateful(
                "fabric:/A/Web",
                "S",
                [("p", vec![(1, &*first), (2, &*second)])],
            );
    });
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    let report = running.report(1).await;
    let listed = quarantined(&running);
    assert_eq!(listed.len(), 1);
    let reasons = listed[0].problems.to_string();
    assert!(
        reasons.contains("writes have no destination") && reasons.contains("`admin`"),
        "{reasons}"
    );
    let (state, text) = told(&discoverer, &report);
    assert_eq!(state, HealthState::Warning);
    assert!(text.contains("`admin`"), "{text}");
}

/// The health report of the only service: its state and description.
fn told(discoverer: &ServiceFabricDiscoverer, report: &CycleReport) -> (HealthState, String) {
    let reports = discoverer.health_reports(report);
    assert_eq!(reports.len(), 1, "{reports:?}");
    let information = &reports[0].information;
    (
        information.health_state.clone(),
        information.description.clone(),
    )
}

/// No instance at all is no mistake, and neither is one that is not ready.
#[tokio::test(start_paused = true)]
async fn a_service_without_instances_is_not_listed() {
    let cluster = one_service(&LABELS, &[]);
    let running = Running::start(&discoverer(&cluster));
    running.report(1).await;
    assert!(quarantined(&running).is_empty());
    assert_eq!(warnings(&running), Vec::<String>::new());
}

/// A wrong label, unusable addresses and instances that have moved, in each order.
#[tokio::test(start_paused = true)]
async fn wrong_labels_and_unusable_addresses_and_moves_do_not_hide_each_other() {
    let bad = "https://+:1";
    let cluster = one_service(&LABELS, &[(1, "https://a:1"), (2, "https://b:2")]);
    let running = Running::start(&discoverer(&cluster));
    running.report(1).await;

    // One of the instances that have moved is usable: its address serves under the earlier labels.
    edit(&cluster, &WRONG, &[(3, bad), (4, "https://d:4")]);
    after_a_while(&running).await;
    assert_eq!(addresses_in(&running.config()), ["https://d:4/"]);
    let listed = quarantined(&running);
    let reasons = listed[0].problems.to_string();
    assert!(reasons.contains("YARP.Routes.r1.Order"), "{reasons}");
    assert!(reasons.contains("p/3: "), "{reasons}");

    // None is: neither the wrong label nor the address is hidden, and no earlier address serves.
    edit(&cluster, &WRONG, &[(3, bad), (5, bad)]);
    after_a_while(&running).await;
    assert!(addresses_in(&running.config()).is_empty());
    assert_eq!(running.config().routes.len(), 1);
    let listed = quarantined(&running);
    assert_eq!(listed.len(), 1);
    let reasons = listed[0].problems.to_string();
    assert!(reasons.contains("YARP.Routes.r1.Order"), "{reasons}");
    assert!(
        reasons.contains("no replica has a usable endpoint"),
        "{reasons}"
    );
    let serves = listed[0].serves();
    assert!(serves.ends_with(" ago, no destination"), "{serves}");

    // The label is corrected first.
    edit(&cluster, &LABELS, &[(3, bad), (5, bad)]);
    after_a_while(&running).await;
    let listed = quarantined(&running);
    assert_eq!(listed[0].serves(), "rules of 0 s ago, no destination");
    edit(&cluster, &LABELS, &[(6, "https://e:6")]);
    after_a_while(&running).await;
    assert_eq!(addresses_in(&running.config()), ["https://e:6/"]);
    assert!(quarantined(&running).is_empty());
}

/// A wrong label of a service without an instance, or with unusable ones: the report says which, and names the label.
#[tokio::test(start_paused = true)]
async fn no_instance_and_no_usable_instance_are_told_apart_beside_a_wrong_label() {
    let cluster = one_service(&LABELS, &[]);
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    for (instances, lacks) in [
        (&[][..], "no replica that is ready for requests"),
        (&[(1, "https://+:1")], "no destination that can be used"),
    ] {
        edit(&cluster, &WRONG, instances);
        let report = after_a_while(&running).await;
        let listed = quarantined(&running);
        let serves = listed[0].serves();
        assert!(serves.ends_with(" ago, no destination"), "{serves}");
        assert_eq!(listed[0].has_unusable_instances(), !instances.is_empty());
        let (state, text) = told(&discoverer, &report);
        assert_eq!(state, HealthState::Warning);
        assert!(text.starts_with("Its labels are those of "), "{text}");
        let sentence = format!(
            " ago. The service has {lacks}. Its current labels are invalid, and its last known good labels apply.\n"
        );
        assert!(text.contains(&sentence), "{text}");
        assert!(text.contains("YARP.Routes.r1.Order"), "{text}");
    }
    // It cannot be read: the report does not say that it is served.
    cluster.fail("services", CallErrorKind::Busy);
    let now = running.provider.state().status.cycles;
    let report = running.report(now + 200).await;
    let (_, text) = told(&discoverer, &report);
    assert!(
        text.contains(
            "The service could not be read, and its last known state has no destination."
        ),
        "{text}"
    );
}

/// Addresses of one partition are unusable while another one cannot be read: each keeps to its own rule.
#[tokio::test(start_paused = true)]
async fn an_unreadable_partition_beside_an_unusable_one_keeps_its_addresses() {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", LABELS)
            .application("fabric:/A", "T", "1", [])
            .stateless(
                "fabric:/A/Web",
                "S",
                [
                    ("p", vec![(1, "https://a:1")]),
                    ("q", vec![(2, "https://b:2")]),
                ],
            );
    });
    let options = ServiceFabricOptions::default().with_cache_duration(Duration::ZERO);
    let running = Running::start(&with_options(&cluster, options));
    running.report(1).await;
    cluster.edit(|contents| {
        contents.instances("p", &[(1, "https://+:1")]);
        contents.instances("q", &[(3, "https://unseen:3")]);
    });
    cluster.fail("replicas q", CallErrorKind::Busy);
    let now = running.provider.state().status.cycles;
    running.report(now + 3).await;
    assert_eq!(addresses_in(&running.config()), ["https://b:2/"]);
    let problems = warnings(&running).join("\n");
    assert!(
        problems.contains("is a URL of all addresses of its node"),
        "{problems}"
    );
    assert!(
        problems.contains("the source cannot look at them now"),
        "{problems}"
    );
}

/// Hosts in punycode and in Unicode, names and wildcards, from labels and from overrides.
#[tokio::test(start_paused = true)]
async fn hosts_in_punycode_serve_from_labels_and_from_overrides() {
    let hosts = |running: &Running| {
        let config = running.config();
        let hosts = config
            .routes
            .values()
            .flat_map(|route| route.r#match.hosts.clone());
        hosts.flatten().collect::<Vec<_>>()
    };
    for host in [
        "xn--bcher-kva.example",
        "XN--BCHER-KVA.example:8443",
        "*.xn--bcher-kva.example",
        "b\u{fc}cher.example,xn--bcher-kva.test",
    ] {
        let labels = [
            ("YARP.Enable", "true"),
            ("YARP.EnableDynamicOverrides", "true"),
            ("YARP.Routes.r1.Hosts", host),
        ];
        let cluster = one_service(&labels, &[(1, "https://a:1")]);
        let running = Running::start(&discoverer(&cluster));
        running.report(1).await;
        assert!(
            quarantined(&running).is_empty(),
            "{host}: {:?}",
            warnings(&running)
        );
        assert_eq!(hosts(&running).join(","), host);
        // An override with another wildcard, and one that is no name.
        let set = |text: &'static str| {
            cluster.edit(|contents| {
                contents.property("fabric:/A/Web", "YARP.Routes.r1.Hosts", text);
            });
        };
        set("*.xn--mnchen-3ya.example");
        after_a_while(&running).await;
        assert_eq!(hosts(&running), ["*.xn--mnchen-3ya.example"]);
        assert!(quarantined(&running).is_empty());
        set("*.xn--a.example");
        after_a_while(&running).await;
        assert_eq!(hosts(&running), ["*.xn--mnchen-3ya.example"]);
        let reasons = quarantined(&running)[0].problems.to_string();
        assert!(
            reasons.contains("not a valid internationalized name"),
            "{reasons}"
        );
    }
}
