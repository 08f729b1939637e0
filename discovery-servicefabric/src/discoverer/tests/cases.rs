//! The table of discovery: a small cluster with one change each, and the result.
//!
//! The cluster: application `fabric:/App` of type `AppType` 1.0, with the parameter `Host` = `a.example`
//! over the defaults `Host` = `z` and `Lb` = `RoundRobin`; its stateless service `fabric:/App/Web` with the
//! partition `P1` and the instance 101, which listens at `http://10.0.0.1:80` and `https://10.0.0.1:443`.

mod applications;

use std::time::Duration;

use super::*;
use crate::calls::{CallErrorKind, HealthEntity};
use crate::model::{HealthState, PropertyKind, ReplicaRole, ReplicaStatus, ServiceKind};
use crate::testing::{Contents, replica};

const ADDRESS: &str =
    r#"{"Endpoints":{"http":"http://10.0.0.1:80","https":"https://10.0.0.1:443"}}"#;

/// The cluster with these labels beside, or instead of, those that serve the service.
fn with_labels(labels: &[(&str, &str)]) -> FakeCluster {
    let mut all = LABELS.to_vec();
    all.retain(|(key, _)| labels.iter().all(|(other, _)| other != key));
    all.extend(labels);
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("AppType", "1.0", [("Host", "z"), ("Lb", "RoundRobin")])
            .service_type("AppType", "1.0", "WebType", all)
            .application("fabric:/App", "AppType", "1.0", [("Host", "a.example")])
            .service(
                "fabric:/App/Web",
                "WebType",
                ServiceKind::Stateless,
                [("P1", vec![replica(ServiceKind::Stateless, 101, ADDRESS)])],
            );
    });
    cluster
}

/// The result of a cycle, in short form.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// `cluster destination address`.
    destinations: Vec<String>,
    clusters: Vec<String>,
    routes: Vec<String>,
    /// `entity state`, with `!` for those that are sent at once.
    reports: Vec<String>,
    config: Arc<ProxyConfig>,
}

async fn outcome(cluster: &FakeCluster, options: ServiceFabricOptions) -> Outcome {
    let discoverer = with_options(cluster, options);
    let once = discoverer.runner().run_once().await;
    let config = once.state.config.clone().unwrap_or_default();
    let mut outcome = Outcome {
        config: Arc::clone(&config),
        ..Outcome::default()
    };
    for (id, of) in &config.clusters {
        outcome.clusters.push(id.to_string());
        for (destination, of) in &of.destinations {
            let line = format!("{destination} {}", of.address);
            outcome.destinations.push(line);
        }
    }
    outcome.routes = config.routes.keys().map(ToString::to_string).collect();
    let reports = discoverer.health_reports(once.report.as_deref().expect("an answer"));
    outcome.reports = reports
        .iter()
        .map(|report| {
            assert_eq!(report.information.source_id, "YARP");
            assert_eq!(report.information.property, "DynamicConfig");
            assert!(report.information.remove_when_expired);
            let at_once = if report.immediate { "!" } else { "" };
            let state = &report.information.health_state;
            format!("{} {state}{at_once}", report.entity)
        })
        .collect();
    outcome
}

struct Case {
    id: &'static str,
    labels: &'static [(&'static str, &'static str)],
    edit: fn(&mut Contents),
    options: fn(ServiceFabricOptions) -> ServiceFabricOptions,
    destinations: &'static [&'static str],
    routes: &'static [&'static str],
    reports: &'static [&'static str],
    /// A further check of the configuration.
    config: fn(&ProxyConfig),
}

const DESTINATION: &[&str] = &["P1/101 https://10.0.0.1/"];
const ROUTE: &[&str] = &["fabric%3A%2FApp%2FWeb:r1"];
const OK: &[&str] = &["service App~Web Ok"];
const WARNING: &[&str] = &["service App~Web Warning!"];

impl Case {
    const fn new(id: &'static str) -> Self {
        Self {
            id,
            labels: &[],
            edit: |_| {},
            options: |options| options,
            destinations: DESTINATION,
            routes: ROUTE,
            reports: OK,
            config: |_| {},
        }
    }

    const fn labels(mut self, labels: &'static [(&'static str, &'static str)]) -> Self {
        self.labels = labels;
        self
    }

    const fn edit(mut self, edit: fn(&mut Contents)) -> Self {
        self.edit = edit;
        self
    }

    const fn options(mut self, options: fn(ServiceFabricOptions) -> ServiceFabricOptions) -> Self {
        self.options = options;
        self
    }

    const fn config(mut self, config: fn(&ProxyConfig)) -> Self {
        self.config = config;
        self
    }

    const fn gives(
        mut self,
        destinations: &'static [&'static str],
        routes: &'static [&'static str],
        reports: &'static [&'static str],
    ) -> Self {
        self.destinations = destinations;
        self.routes = routes;
        self.reports = reports;
        self
    }
}

fn web(contents: &mut Contents) -> &mut crate::model::Replica {
    &mut contents.replicas.get_mut("P1").expect("it is there")[0]
}

fn stateful(contents: &mut Contents) {
    let made = |id, role| {
        let mut replica = replica(ServiceKind::Stateful, id, ADDRESS);
        replica.replica_role = role;
        replica
    };
    contents.remove_service("fabric:/App/Web").service(
        "fabric:/App/Web",
        "WebType",
        ServiceKind::Stateful,
        [(
            "P1",
            vec![
                made(1, ReplicaRole::Primary),
                made(2, ReplicaRole::ActiveSecondary),
                made(3, ReplicaRole::IdleSecondary),
            ],
        )],
    );
}

const fn not_ready(id: &'static str, edit: fn(&mut Contents)) -> Case {
    Case::new(id)
        .edit(edit)
        .options(|options| options.with_report_replicas_health(true))
        .gives(&[], ROUTE, OK)
}

const CASES: &[Case] = &[
    Case::new("1"),
    Case::new("2")
        .labels(&[("YARP.Enable", "")])
        .gives(&[], &[], &[]),
    // The original requires exactly `true`.
    Case::new("3").labels(&[("YARP.Enable", "True")]),
    Case::new("4")
        .labels(&[("YARP.Enable", "[On]")])
        .edit(|contents| {
            contents.applications[0]
                .parameters
                .push(crate::model::Parameter {
                    key: "On".to_owned(),
                    value: "true".to_owned(),
                });
        }),
    Case::new("6")
        .options(|options| options.with_discover_insecure_http_destinations(true))
        .gives(&["P1/101 http://10.0.0.1/"], ROUTE, OK),
    Case::new("7")
        .edit(|contents| {
            web(contents).address = r#"{"Endpoints":{"http":"http://10.0.0.1:80"}}"#.to_owned()
        })
        .options(|options| options.with_report_replicas_health(true))
        .gives(
            &[],
            ROUTE,
            &["replica P1/101 Warning!", "service App~Web Warning!"],
        ),
    Case::new("7, without reports of replicas")
        .edit(|contents| {
            web(contents).address = r#"{"Endpoints":{"http":"http://10.0.0.1:80"}}"#.to_owned()
        })
        .gives(&[], ROUTE, WARNING),
    Case::new("11")
        .labels(&[("YARP.Backend.ServiceFabric.ListenerName", "http")])
        .options(|options| options.with_report_replicas_health(true))
        .gives(
            &[],
            ROUTE,
            &["replica P1/101 Warning!", "service App~Web Warning!"],
        ),
    not_ready("17, Down", |contents| {
        web(contents).replica_status = ReplicaStatus::Down
    }),
    not_ready("17, InBuild", |contents| {
        web(contents).replica_status = ReplicaStatus::InBuild
    }),
    not_ready("17, Standby", |contents| {
        web(contents).replica_status = ReplicaStatus::Standby
    }),
    not_ready("17, Dropped", |contents| {
        web(contents).replica_status = ReplicaStatus::Dropped
    }),
    Case::new("18").edit(|contents| web(contents).health_state = HealthState::Error),
    Case::new("20")
        .labels(&[(
            "YARP.Backend.HealthCheck.Active.ServiceFabric.ListenerName",
            "probe",
        )])
        .options(|options| options.with_report_replicas_health(true))
        .gives(
            &[],
            ROUTE,
            &["replica P1/101 Warning!", "service App~Web Warning!"],
        ),
    Case::new("21").edit(stateful).gives(
        &[
            "P1/1 https://10.0.0.1/",
            "P1/2 https://10.0.0.1/",
            "P1/3 https://10.0.0.1/",
        ],
        ROUTE,
        OK,
    ),
    Case::new("28").labels(&[("YARP.Backend.BackendId", "")]),
    Case::new("31")
        .labels(&[("YARP.Routes.r2.Order", "1")])
        .gives(&[], &[], WARNING),
    Case::new("33")
        .labels(&[("YARP.Routes.r1.Hosts", "[Host]")])
        .config(|config| {
            let hosts = config.routes[0].r#match.hosts.as_deref();
            assert_eq!(hosts, Some(&["a.example".into()][..]));
        }),
    Case::new("34")
        .labels(&[("YARP.Backend.LoadBalancingPolicy", "[Lb]")])
        .config(|config| {
            let policy = config.clusters[0].load_balancing_policy.as_deref();
            assert_eq!(policy, Some("RoundRobin"));
        }),
    Case::new("40")
        .labels(&[
            ("YARP.Routes.r1.MatchHeaders.[0].Name", "x"),
            ("YARP.Routes.r1.MatchHeaders.[0].Mode", "Nope"),
        ])
        .gives(&[], &[], WARNING),
    Case::new("41")
        .labels(&[
            ("YARP.Routes.r1.Transforms.[0].PathPrefix", "/p"),
            ("YARP.Routes.r1.Transforms.[0].pathPrefix", "/p"),
        ])
        .gives(&[], &[], WARNING),
    Case::new("42, a time").labels(&[("YARP.Backend.HealthCheck.Active.Interval", "00:00:10")]),
    Case::new("42, no time")
        .labels(&[("YARP.Backend.HealthCheck.Active.Interval", "10 parsecs")])
        .gives(&[], &[], WARNING),
    Case::new("44")
        .labels(&[
            ("YARP.Backend.BackendId", "a"),
            ("yarp.Backend.BackendId", "b"),
        ])
        .gives(&[], &[], WARNING),
    Case::new("46")
        .labels(&[("YARP.EnableDynamicOverrides", "true")])
        .edit(|contents| {
            contents.property("fabric:/App/Web", "YARP.Routes.r1.Path", "/n");
        })
        .config(|config| {
            assert_eq!(config.routes[0].r#match.path.as_deref(), Some("/n"));
        }),
    Case::new("46, a new route")
        .labels(&[("YARP.EnableDynamicOverrides", "true")])
        .edit(|contents| {
            contents.property("fabric:/App/Web", "YARP.Routes.r9.Path", "/n");
        })
        .gives(
            DESTINATION,
            &["fabric%3A%2FApp%2FWeb:r1", "fabric%3A%2FApp%2FWeb:r9"],
            OK,
        ),
    Case::new("47")
        .labels(&[("YARP.EnableDynamicOverrides", "true")])
        .edit(|contents| {
            contents.property("fabric:/App/Web", "Foo", "1");
        })
        .config(|config| {
            let path = config.routes[0].r#match.path.as_deref();
            assert_eq!(path, Some("/{**catch-all}"));
        }),
    Case::new("47, not a text")
        .labels(&[("YARP.EnableDynamicOverrides", "true")])
        .edit(|contents| {
            contents.property("fabric:/App/Web", "YARP.Routes.r1.Path", "/n");
            let mut properties = contents.properties.values_mut().flatten();
            let property = properties.next().expect("it was set");
            let value = property.value.as_mut().expect("it was set");
            value.kind = PropertyKind::Int64;
            value.data = "7".into();
        })
        .config(|config| {
            let path = config.routes[0].r#match.path.as_deref();
            assert_eq!(path, Some("/{**catch-all}"));
        }),
    Case::new("48").labels(&[("YARP.EnableDynamicOverrides", "true")]),
    Case::new("49")
        .labels(&[("YARP.EnableDynamicOverrides", "true")])
        .edit(|contents| {
            contents.property("fabric:/App/Web", "YARP.Enable", "false");
        })
        .gives(&[], &[], &[]),
    Case::new("62, stateless")
        .options(|options| options.with_report_replicas_health(true))
        .gives(
            DESTINATION,
            ROUTE,
            &["replica P1/101 Ok", "service App~Web Ok"],
        ),
    Case::new("68")
        .edit(|contents| {
            for types in contents.service_types.values_mut().flatten() {
                types.service_type_description.extensions = Some(Vec::new());
            }
        })
        .gives(&[], &[], &[]),
    Case::new("system services").edit(|contents| {
        contents
            .application("fabric:/System", "AppType", "1.0", [])
            .stateless(
                "fabric:/System/NamingService",
                "WebType",
                [("s", vec![(1, "https://s:1")])],
            );
    }),
    Case::new("immediate reports")
        .options(|options| options.with_always_send_immediate_health_reports(true))
        .gives(DESTINATION, ROUTE, &["service App~Web Ok!"]),
    Case::new("no reports")
        .options(|options| options.with_report_services_health(false))
        .gives(DESTINATION, ROUTE, &[]),
];

#[tokio::test(start_paused = true)]
async fn the_table() {
    for case in CASES {
        let cluster = with_labels(case.labels);
        cluster.edit(case.edit);
        let found = outcome(&cluster, (case.options)(ServiceFabricOptions::default())).await;
        assert_eq!(found.destinations, case.destinations, "case {}", case.id);
        assert_eq!(found.routes, case.routes, "case {}", case.id);
        assert_eq!(found.reports, case.reports, "case {}", case.id);
        (case.config)(&found.config);
    }
}

/// 62
#[tokio::test(start_paused = true)]
async fn a_report_about_a_replica_says_what_kind_it_is_of() {
    for (edit, expected) in [
        ((|_| {}) as fn(&mut Contents), ServiceKind::Stateless),
        (stateful, ServiceKind::Stateful),
    ] {
        let cluster = with_labels(&[]);
        cluster.edit(edit);
        let options = ServiceFabricOptions::default().with_report_replicas_health(true);
        let discoverer = with_options(&cluster, options);
        let once = discoverer.runner().run_once().await;
        let reports = discoverer.health_reports(&once.report.unwrap());
        let kinds: Vec<_> = reports
            .iter()
            .filter_map(|report| match &report.entity {
                HealthEntity::Replica { kind, .. } => Some(kind),
                _ => None,
            })
            .collect();
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| **kind == expected));
    }
}

/// 25
#[tokio::test(start_paused = true)]
async fn replicas_of_two_partitions_may_have_the_same_id() {
    let cluster = with_labels(&[]);
    cluster.edit(|contents| {
        let primary = || vec![replica(ServiceKind::Stateful, 7, ADDRESS)];
        contents.remove_service("fabric:/App/Web").service(
            "fabric:/App/Web",
            "WebType",
            ServiceKind::Stateful,
            [("P1", primary()), ("P2", primary())],
        );
    });
    let found = outcome(&cluster, ServiceFabricOptions::default()).await;
    assert_eq!(
        found.destinations,
        ["P1/7 https://10.0.0.1/", "P2/7 https://10.0.0.1/"]
    );
}

/// 29
#[tokio::test(start_paused = true)]
async fn of_two_services_with_one_cluster_the_first_has_it() {
    let cluster = with_labels(&[("YARP.Backend.BackendId", "be")]);
    cluster.edit(|contents| {
        // By name it comes before `fabric:/App/Web`, by application after it.
        contents
            .application("fabric:/App-2", "AppType", "1.0", [])
            .stateless(
                "fabric:/App-2/A",
                "WebType",
                [("P2", vec![(1, "https://b:1")])],
            );
    });
    for seed in 0..8 {
        cluster.shuffle(seed);
        let found = outcome(&cluster, ServiceFabricOptions::default()).await;
        assert_eq!(found.clusters, ["be"]);
        assert_eq!(found.destinations, DESTINATION);
        assert_eq!(found.routes, ["be:r1"]);
        assert_eq!(
            found.reports,
            ["service App~Web Ok", "service App-2~A Warning!"]
        );
    }
}

/// 66
#[tokio::test(start_paused = true)]
async fn ids_in_paths_are_encoded_and_clusters_keep_the_name() {
    let cluster = with_labels(&[]);
    cluster.edit(|contents| {
        contents
            .application("fabric:/a/b", "AppType", "1.0", [])
            .stateless(
                "fabric:/a/b/svc x",
                "WebType",
                [("P2", vec![(1, "https://b:1")])],
            );
        // Gateways of old send no ids.
        for service in contents.services.values_mut().flatten() {
            service.id.clear();
        }
        for application in &mut contents.applications {
            application.id.clear();
        }
    });
    let found = outcome(&cluster, ServiceFabricOptions::default()).await;
    assert_eq!(found.clusters, ["fabric:/App/Web", "fabric:/a/b/svc x"]);
    assert_eq!(cluster.calls("partitions a~b~svc%20x"), 1);
    assert_eq!(cluster.calls("services a~b"), 1);
}

/// 69
#[tokio::test(start_paused = true)]
async fn each_service_has_the_labels_of_its_application_s_version() {
    let cluster = with_labels(&[("YARP.Routes.r1.Path", "/one")]);
    cluster.edit(|contents| {
        contents
            .application_type("AppType", "2.0", [])
            .service_type(
                "AppType",
                "2.0",
                "WebType",
                [("YARP.Enable", "true"), ("YARP.Routes.r2.Path", "/two")],
            )
            .application("fabric:/New", "AppType", "2.0", [])
            .stateless(
                "fabric:/New/Web",
                "WebType",
                [("P2", vec![(1, "https://b:1")])],
            );
    });
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(1).await;
    let routes = |running: &Running| -> Vec<_> {
        let config = running.config();
        config.routes.keys().map(ToString::to_string).collect()
    };
    let both = ["fabric%3A%2FApp%2FWeb:r1", "fabric%3A%2FNew%2FWeb:r2"];
    assert_eq!(routes(&running), both);
    // An upgrade changes the labels without touching an instance.
    cluster.edit(|contents| {
        "2.0".clone_into(&mut contents.applications[0].type_version);
    });
    running.report(2).await;
    // A new route is behind those that serve.
    let both = ["fabric%3A%2FNew%2FWeb:r2", "fabric%3A%2FApp%2FWeb:r2"];
    assert_eq!(routes(&running), both);
}

/// 61
#[tokio::test(start_paused = true)]
async fn reports_that_fail_change_nothing() {
    let cluster = with_labels(&[]);
    cluster.fail("report_health", CallErrorKind::Busy);
    let discoverer = discoverer(&cluster);
    let running = Running::start(&discoverer);
    running.report(3).await;
    assert_eq!(running.served(), ["fabric:/App/Web"]);
    assert!(cluster.calls("report_health") >= 2);
    assert_eq!(running.state(), discovery_core::SourceState::Live);
}

/// 63, and the time of 30 s.
#[tokio::test(start_paused = true)]
async fn reports_hold_until_the_next_ones_can_have_come() {
    for (period, expected) in [(5, 65), (10, 70), (30, 90), (60, 180)] {
        let options =
            ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(period));
        let discoverer = with_options(&with_labels(&[]), options);
        let once = discoverer.runner().run_once().await;
        let reports = discoverer.health_reports(&once.report.unwrap());
        let held = reports[0].information.time_to_live;
        assert_eq!(held, Some(Duration::from_secs(expected)), "{period}");
    }
}
