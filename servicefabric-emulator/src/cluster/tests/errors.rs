//! The error code of each rejected request.

use indexmap::IndexMap;

use crate::cluster::testing::{SHOP, cluster, name, partition_of, process};
use crate::cluster::{
    ApplicationCreation, Cluster, DeactivationIntent, ErrorCode, FabricError, PageRequest,
    PartitionId, PartitionKey, PartitionScheme, PropertyValue, ReplicaRef, ServiceCreation,
    ServiceScale, ServiceUpdate, UpgradeRequest,
};
use crate::health::{EntityKey, HealthQuery, HealthReport, HealthState};
use crate::hosting::Span;

const WEB: &str = "fabric:/Shop/Web";
const STORE: &str = "fabric:/Shop/Store";

fn nowhere() -> PartitionId {
    "00000000-0000-0000-0000-000000000000".parse().unwrap()
}

fn service(name_of: &str, type_name: &str, instance_count: i32) -> ServiceCreation {
    let scale = ServiceScale::Stateless {
        instance_count,
        min_instance_count: 1,
    };
    ServiceCreation::new(name("fabric:/Shop"), name(name_of), type_name, scale)
}

fn create(name_of: &str, type_name: &str, version: &str) -> ApplicationCreation {
    ApplicationCreation::new(name(name_of), type_name, version)
}

/// A request, and the error that it must fail with.
type Case = (
    &'static str,
    ErrorCode,
    fn(&mut Cluster) -> Result<(), FabricError>,
);

const CASES: &[Case] = &[
    ("deactivate no node", ErrorCode::NodeNotFound, |c| {
        c.deactivate_node("x", DeactivationIntent::Pause)
    }),
    ("activate no node", ErrorCode::NodeNotFound, |c| {
        c.activate_node("x")
    }),
    ("stop no node", ErrorCode::NodeNotFound, |c| {
        c.stop_node("x")
    }),
    ("another life", ErrorCode::InstanceIdMismatch, |c| {
        c.restart_node("_Node_0", 7)
    }),
    ("no type", ErrorCode::ApplicationTypeNotFound, |c| {
        c.create_application(create("fabric:/A", "X", "1.0.0"))
    }),
    ("no version", ErrorCode::ApplicationTypeNotFound, |c| {
        c.create_application(create("fabric:/A", "ShopType", "7"))
    }),
    (
        "same application",
        ErrorCode::ApplicationAlreadyExists,
        |c| c.create_application(create("fabric:/Shop", "ShopType", "1.0.0")),
    ),
    ("no such parameter", ErrorCode::InvalidArgument, |c| {
        let parameters = IndexMap::from([("Nope".to_owned(), String::new())]);
        c.create_application(create("fabric:/A", "ShopType", "1.0.0").with_parameters(parameters))
    }),
    (
        "delete no application",
        ErrorCode::ApplicationNotFound,
        |c| c.delete_application(&name("fabric:/A")),
    ),
    ("type in use", ErrorCode::ApplicationTypeInUse, |c| {
        c.unprovision("ShopType", "1.0.0")
    }),
    (
        "unprovision nothing",
        ErrorCode::ApplicationTypeNotFound,
        |c| c.unprovision("ShopType", "7"),
    ),
    (
        "provision twice",
        ErrorCode::ApplicationTypeAlreadyExists,
        |c| c.provision("ShopType/1.0.0"),
    ),
    ("provision either", ErrorCode::InvalidArgument, |c| {
        c.provision("ShopType")
    }),
    ("provision nothing", ErrorCode::InvalidArgument, |c| {
        c.provision("Nope")
    }),
    ("no manifest", ErrorCode::ServiceManifestNotFound, |c| {
        c.service_manifest("ShopType", "1.0.0", "Nope").map(drop)
    }),
    ("services of nothing", ErrorCode::ApplicationNotFound, |c| {
        c.services(&name("fabric:/A"), None, &PageRequest::default())
            .map(drop)
    }),
    ("service of nothing", ErrorCode::ApplicationNotFound, |c| {
        let mut creation = service("fabric:/A/S", "WebType", 1);
        creation.application = name("fabric:/A");
        c.create_service(creation)
    }),
    ("same service", ErrorCode::ServiceAlreadyExists, |c| {
        c.create_service(service(WEB, "WebType", 1))
    }),
    ("no service type", ErrorCode::ServiceTypeNotFound, |c| {
        c.create_service(service("fabric:/Shop/N", "Nope", 1))
    }),
    ("another kind", ErrorCode::InvalidArgument, |c| {
        c.create_service(service("fabric:/Shop/N", "StoreType", 1))
    }),
    ("another place", ErrorCode::InvalidArgument, |c| {
        c.create_service(service("fabric:/Other/N", "WebType", 1))
    }),
    ("no count", ErrorCode::InvalidArgument, |c| {
        c.create_service(service("fabric:/Shop/N", "WebType", -2))
    }),
    ("no partitions", ErrorCode::InvalidArgument, |c| {
        c.create_service(
            service("fabric:/Shop/N", "WebType", 1).with_scheme(PartitionScheme::Named(vec![])),
        )
    }),
    ("update nothing", ErrorCode::ServiceDoesNotExist, |c| {
        c.update_service(&name("fabric:/Shop/N"), ServiceUpdate::default())
    }),
    (
        "stateless replicas",
        ErrorCode::InvalidForStatelessServices,
        |c| {
            c.update_service(
                &name(WEB),
                ServiceUpdate {
                    target_replica_set_size: Some(2),
                    ..ServiceUpdate::default()
                },
            )
        },
    ),
    (
        "stateful instances",
        ErrorCode::InvalidForStatefulServices,
        |c| {
            c.update_service(
                &name(STORE),
                ServiceUpdate {
                    instance_count: Some(2),
                    ..ServiceUpdate::default()
                },
            )
        },
    ),
    ("fewer than least", ErrorCode::InvalidArgument, |c| {
        c.update_service(
            &name(STORE),
            ServiceUpdate {
                target_replica_set_size: Some(1),
                ..ServiceUpdate::default()
            },
        )
    }),
    ("odd constraint", ErrorCode::InvalidArgument, |c| {
        c.update_service(
            &name(WEB),
            ServiceUpdate {
                placement_constraints: Some("(".to_owned()),
                ..ServiceUpdate::default()
            },
        )
    }),
    ("delete no service", ErrorCode::ServiceDoesNotExist, |c| {
        c.delete_service(&name("fabric:/Shop/N"))
    }),
    ("no partition", ErrorCode::PartitionNotFound, |c| {
        c.replicas(nowhere(), &PageRequest::default()).map(drop)
    }),
    (
        "partitions of nothing",
        ErrorCode::ServiceDoesNotExist,
        |c| {
            c.partitions(&name("fabric:/Shop/N"), &PageRequest::default())
                .map(drop)
        },
    ),
    ("odd token", ErrorCode::InvalidArgument, |c| {
        c.partitions(&name(WEB), &PageRequest::default().after("x"))
            .map(drop)
    }),
    ("odd type token", ErrorCode::InvalidArgument, |c| {
        c.application_types(None, None, &PageRequest::default().after("x"))
            .map(drop)
    }),
    ("resolve nothing", ErrorCode::ServiceDoesNotExist, |c| {
        c.resolve(&name("fabric:/Shop/N"), &PartitionKey::None, None)
            .map(drop)
    }),
    ("key of singleton", ErrorCode::InvalidPartitionKey, |c| {
        c.resolve(&name(WEB), &PartitionKey::Int64(1), None)
            .map(drop)
    }),
    ("no key of ranges", ErrorCode::InvalidPartitionKey, |c| {
        c.resolve(&name(STORE), &PartitionKey::None, None).map(drop)
    }),
    ("key outside", ErrorCode::InvalidPartitionKey, |c| {
        c.resolve(&name(STORE), &PartitionKey::Int64(10), None)
            .map(drop)
    }),
    ("key below", ErrorCode::InvalidPartitionKey, |c| {
        c.resolve(&name(STORE), &PartitionKey::Int64(-1), None)
            .map(drop)
    }),
    ("odd version", ErrorCode::InvalidArgument, |c| {
        c.resolve(&name(WEB), &PartitionKey::None, Some("x"))
            .map(drop)
    }),
    ("nothing answers", ErrorCode::ServiceOffline, |c| {
        c.update_service(
            &name(WEB),
            ServiceUpdate {
                instance_count: Some(0),
                ..ServiceUpdate::default()
            },
        )?;
        c.resolve(&name(WEB), &PartitionKey::None, None).map(drop)
    }),
    ("no replica", ErrorCode::ReplicaDoesNotExist, |c| {
        let partition = partition_of(c, STORE).id;
        c.restart_replica(
            "_Node_0",
            ReplicaRef {
                partition,
                replica: 1,
            },
        )
    }),
    ("replica elsewhere", ErrorCode::ReplicaDoesNotExist, |c| {
        let primary = partition_of(c, STORE).primary().unwrap().clone();
        let other = if &*primary.node == "_Node_0" {
            "_Node_1"
        } else {
            "_Node_0"
        };
        c.remove_replica(other, primary.key, false)
    }),
    (
        "restart instance",
        ErrorCode::InvalidForStatelessServices,
        |c| {
            let replica = partition_of(c, WEB)
                .replicas
                .values()
                .next()
                .unwrap()
                .clone();
            c.restart_replica(&replica.node, replica.key)
        },
    ),
    (
        "primary of stateless",
        ErrorCode::InvalidForStatelessServices,
        |c| {
            let id = partition_of(c, WEB).id;
            c.move_primary(id, None)
        },
    ),
    (
        "instance of stateful",
        ErrorCode::InvalidForStatefulServices,
        |c| {
            let id = partition_of(c, STORE).id;
            c.move_instance(id, None, None)
        },
    ),
    ("no code package", ErrorCode::CodePackageNotFound, |c| {
        c.crash_code_package("_Node_0", &process("Nope"), 1)
    }),
    ("another run", ErrorCode::InstanceIdMismatch, |c| {
        let node = partition_of(c, WEB)
            .replicas
            .values()
            .next()
            .unwrap()
            .node
            .clone();
        c.restart_code_package(&node, &process("WebPkg"), 999)
    }),
    ("upgrade nothing", ErrorCode::ApplicationNotFound, |c| {
        c.upgrade_application(&name("fabric:/A"), UpgradeRequest::new("2.0.0"))
    }),
    (
        "roll nothing back",
        ErrorCode::ApplicationNotUpgrading,
        |c| c.roll_back_upgrade(&name("fabric:/Shop")),
    ),
    ("same name", ErrorCode::NameAlreadyExists, |c| {
        c.create_name(name(WEB))
    }),
    ("name of service", ErrorCode::NameNotEmpty, |c| {
        c.delete_name(&name(WEB))
    }),
    ("no name", ErrorCode::NameDoesNotExist, |c| {
        c.delete_name(&name("fabric:/A"))
    }),
    ("property of no name", ErrorCode::NameDoesNotExist, |c| {
        c.put_property(&name("fabric:/A"), "p", PropertyValue::Int64(1), "")
    }),
    ("no property", ErrorCode::PropertyDoesNotExist, |c| {
        c.property(&name(WEB), "p").map(drop)
    }),
    ("large value", ErrorCode::ValueTooLarge, |c| {
        c.put_property(
            &name(WEB),
            "p",
            PropertyValue::Binary(vec![0; 1024 * 1024 + 1]),
            "",
        )
    }),
    ("health of nothing", ErrorCode::HealthEntityNotFound, |c| {
        c.health(&EntityKey::Partition(nowhere()), &HealthQuery::default())
            .map(drop)
    }),
    ("system source", ErrorCode::InvalidArgument, |c| {
        c.report_health(
            EntityKey::Cluster,
            HealthReport::new("sYSTEM.Me", "p", HealthState::Ok),
            true,
        )
    }),
    ("no source", ErrorCode::InvalidArgument, |c| {
        c.report_health(
            EntityKey::Cluster,
            HealthReport::new("", "p", HealthState::Ok),
            true,
        )
    }),
    ("no property of report", ErrorCode::InvalidArgument, |c| {
        c.report_health(
            EntityKey::Cluster,
            HealthReport::new("me", "", HealthState::Ok),
            true,
        )
    }),
    ("stale report", ErrorCode::HealthStaleReport, |c| {
        let report = HealthReport::new("me", "p", HealthState::Ok).with_sequence_number(7);
        c.report_health(EntityKey::Cluster, report.clone(), true)?;
        c.report_health(EntityKey::Cluster, report.with_sequence_number(6), true)
    }),
    ("drain twice", ErrorCode::NotReady, |c| {
        let key = partition_of(c, WEB).replicas.values().next().unwrap().key;
        c.drain_instance(key, Span::from_secs(60))?;
        c.drain_instance(key, Span::from_secs(60))
    }),
    (
        "drain what keeps state",
        ErrorCode::InvalidForStatefulServices,
        |c| {
            let key = partition_of(c, STORE).replicas.values().next().unwrap().key;
            c.drain_instance(key, Span::from_secs(60))
        },
    ),
    ("deployed on no node", ErrorCode::NodeNotFound, |c| {
        c.deployed_packages("x", &name("fabric:/Shop")).map(drop)
    }),
];

#[test]
fn every_rejection_has_its_code() {
    for (case, expected, ask) in CASES {
        let mut cluster = cluster(SHOP);
        let error = ask(&mut cluster).expect_err(case);
        assert_eq!(error.code, *expected, "{case}: {error}");
        assert!(!error.message.is_empty(), "{case}");
    }
}

#[test]
fn codes_have_the_status_that_gateways_answer_with() {
    for (code, status) in [
        (ErrorCode::InvalidArgument, 400),
        (ErrorCode::ApplicationNotFound, 404),
        (ErrorCode::HealthStaleReport, 409),
        (ErrorCode::ValueTooLarge, 413),
        (ErrorCode::Fail, 500),
        (ErrorCode::ReconfigurationPending, 503),
        (ErrorCode::Timeout, 504),
    ] {
        assert_eq!(code.http_status(), status);
    }
    for code in ErrorCode::ALL {
        let text = code.as_str();
        assert!(
            text.starts_with("FABRIC_E_") || text.starts_with("E_"),
            "{text}"
        );
    }
}

#[test]
fn deleted_things_are_gone_with_everything_below() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, WEB).id;
    let replicas: Vec<ReplicaRef> = cluster
        .partition(id)
        .unwrap()
        .replicas
        .values()
        .map(|found| found.key)
        .collect();
    cluster.delete_service(&name(WEB)).unwrap();
    assert!(cluster.service(&name(WEB)).is_none());
    assert!(cluster.partition(id).is_none());
    assert!(!cluster.name_exists(&name(WEB)));
    for key in replicas {
        assert!(!cluster.is_hosted(key));
        let gone = cluster.health(&EntityKey::Replica(key), &HealthQuery::default());
        assert_eq!(gone.unwrap_err().code, ErrorCode::HealthEntityNotFound);
    }
    cluster.delete_application(&name("fabric:/Shop")).unwrap();
    assert!(cluster.service(&name(STORE)).is_none());
    assert_eq!(
        cluster
            .health_store()
            .statistics(&EntityKey::Cluster)
            .unwrap()
            .of(crate::health::EntityKind::Replica)
            .total(),
        0
    );
    cluster.unprovision("ShopType", "1.0.0").unwrap();
    cluster.provision("ShopType/1.0.0").unwrap();
    cluster
        .create_application(create("fabric:/Shop", "ShopType", "1.0.0"))
        .unwrap();
    cluster.create_service(service(WEB, "WebType", 2)).unwrap();
    crate::cluster::testing::pass(&mut cluster, 30);
    assert_eq!(crate::cluster::testing::ready(&cluster, WEB).len(), 2);
}

#[test]
fn effective_parameters_are_the_defaults_and_what_differs() {
    let cluster = cluster(SHOP);
    let parameters = cluster.effective_parameters(&name("fabric:/Shop")).unwrap();
    let expected = [("Host", "a.example"), ("Lb", "RoundRobin")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(parameters, IndexMap::from(expected));
}

#[test]
fn more_replicas_than_the_memory_holds_are_rejected() {
    let mut cluster = cluster(&format!("cluster.nodes = 1000\n{SHOP}"));
    let wanted = cluster.wanted_replicas;
    assert_eq!(wanted, 3 + 2 * 3);
    let scheme = |count| PartitionScheme::Int64Range {
        low: 0,
        high: 999,
        count,
    };
    let everywhere = service("fabric:/Shop/N", "WebType", -1).with_scheme(scheme(101));
    let error = cluster.create_service(everywhere).unwrap_err();
    assert_eq!(error.code, ErrorCode::Fail);
    assert!(error.message.contains("101009 replicas"), "{error}");
    let once = service("fabric:/Shop/N", "WebType", 1).with_scheme(scheme(101));
    cluster.create_service(once).unwrap();
    let update = |count| ServiceUpdate {
        instance_count: Some(count),
        ..ServiceUpdate::default()
    };
    let error = cluster.update_service(&name("fabric:/Shop/N"), update(-1));
    assert_eq!(error.unwrap_err().code, ErrorCode::Fail);
    cluster
        .update_service(&name("fabric:/Shop/N"), update(2))
        .unwrap();
    assert_eq!(cluster.wanted_replicas, wanted + 202);
    cluster.delete_service(&name("fabric:/Shop/N")).unwrap();
    assert_eq!(cluster.wanted_replicas, wanted);
}
