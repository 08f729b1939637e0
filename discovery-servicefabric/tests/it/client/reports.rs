//! Health reports.

use std::time::Duration;

use discovery_servicefabric::model::{HealthInformation, HealthState, ServiceKind};
use discovery_servicefabric::{CallErrorKind, ClusterCalls, HealthEntity};
use serde_json::{Value, json};

use crate::client::support::{Act, Gateway, bare, error};

fn health() -> HealthInformation {
    let mut health = HealthInformation::new("YARP", "DynamicConfig", HealthState::Warning);
    health.time_to_live = Some(Duration::from_secs(90));
    health.description = "hi".to_owned();
    health.remove_when_expired = true;
    health
}

fn replica(kind: ServiceKind) -> HealthEntity {
    HealthEntity::Replica {
        partition_id: "p".to_owned(),
        replica_id: -7,
        kind,
    }
}

#[tokio::test]
async fn every_entity_has_its_path() {
    let text = str::to_owned;
    let cases = [
        (
            HealthEntity::Cluster,
            "/$/ReportClusterHealth?api-version=6.0",
        ),
        (
            HealthEntity::Node { node: text("n 1") },
            "/Nodes/n%201/$/ReportHealth?api-version=6.0",
        ),
        (
            HealthEntity::Application {
                application_id: text("a~b"),
            },
            "/Applications/a~b/$/ReportHealth?api-version=6.0",
        ),
        (
            HealthEntity::DeployedApplication {
                node: text("n"),
                application_id: text("a"),
            },
            "/Nodes/n/$/GetApplications/a/$/ReportHealth?api-version=6.0",
        ),
        (
            HealthEntity::DeployedServicePackage {
                node: text("n"),
                application_id: text("a"),
                service_package: text("s/p"),
            },
            "/Nodes/n/$/GetApplications/a/$/GetServicePackages/s%2Fp/$/ReportHealth?api-version=6.0",
        ),
        (
            HealthEntity::Service {
                service_id: text("a~s"),
            },
            "/Services/a~s/$/ReportHealth?api-version=6.0",
        ),
        (
            HealthEntity::Partition {
                partition_id: text("p"),
            },
            "/Partitions/p/$/ReportHealth?api-version=6.0",
        ),
        (
            replica(ServiceKind::Stateless),
            "/Partitions/p/$/GetReplicas/-7/$/ReportHealth?api-version=6.0&ServiceKind=Stateless",
        ),
        (
            replica(ServiceKind::Stateful),
            "/Partitions/p/$/GetReplicas/-7/$/ReportHealth?api-version=6.0&ServiceKind=Stateful",
        ),
    ];
    for (entity, target) in cases {
        for immediate in [true, false] {
            let gateway = Gateway::acts([bare(200)]);
            gateway
                .client()
                .report_health(&entity, &health(), immediate)
                .await
                .unwrap();
            let seen = &gateway.seen()[0];
            assert_eq!(seen.method, "POST");
            assert_eq!(
                seen.target(),
                format!("{target}&Immediate={immediate}&timeout=30"),
                "{entity}"
            );
            assert_eq!(
                seen.content_type.as_deref(),
                Some("application/json; charset=utf-8")
            );
            assert_eq!(
                serde_json::from_str::<Value>(&seen.body).unwrap(),
                json!({
                    "SourceId": "YARP", "Property": "DynamicConfig", "HealthState": "Warning",
                    "TimeToLiveInMilliSeconds": "PT0H1M30S", "Description": "hi", "RemoveWhenExpired": true,
                })
            );
        }
    }
}

fn kinds(gateway: &Gateway) -> Vec<String> {
    let seen = gateway.seen();
    seen.iter()
        .map(|seen| seen.argument("ServiceKind").unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn kinds_of_services_are_said_as_the_gateway_understands_them() {
    // As the published sources read it: numbers only.
    let gateway = Gateway::new(|seen| match seen.argument("ServiceKind") {
        Some("1" | "2") => bare(200),
        _ => error(400, "E_INVALIDARG"),
    });
    let client = gateway.client();
    for kind in [
        ServiceKind::Stateless,
        ServiceKind::Stateful,
        ServiceKind::Stateless,
    ] {
        client
            .report_health(&replica(kind), &health(), false)
            .await
            .unwrap();
    }
    client
        .clone()
        .report_health(&replica(ServiceKind::Stateful), &health(), false)
        .await
        .unwrap();
    assert_eq!(kinds(&gateway), ["Stateless", "1", "2", "1", "2"]);

    // As newer ones do: words only. A gateway that is upgraded meanwhile is understood again.
    let mut upgraded = false;
    let gateway = Gateway::new(move |seen| {
        let number = seen.argument("ServiceKind") == Some("1");
        if number && !upgraded {
            upgraded = true;
            return bare(200);
        }
        match number {
            true => error(400, "E_INVALIDARG"),
            false if upgraded => bare(200),
            false => error(400, "E_INVALIDARG"),
        }
    });
    let client = gateway.client();
    for _ in 0..3 {
        client
            .report_health(&replica(ServiceKind::Stateless), &health(), false)
            .await
            .unwrap();
    }
    assert_eq!(
        kinds(&gateway),
        ["Stateless", "1", "1", "Stateless", "Stateless"]
    );
}

#[tokio::test]
async fn an_argument_that_is_wrong_either_way_is_not_about_the_kind() {
    let gateway = Gateway::always(error(400, "E_INVALIDARG"));
    let client = gateway.client();
    let error_ = client
        .report_health(&replica(ServiceKind::Stateful), &health(), false)
        .await
        .unwrap_err();
    assert_eq!(error_.kind(), CallErrorKind::Rejected);
    client
        .report_health(&replica(ServiceKind::Stateful), &health(), false)
        .await
        .unwrap_err();
    assert_eq!(
        kinds(&gateway),
        ["Stateful", "2", "Stateful", "2"],
        "nothing was learnt"
    );

    // Reports about other things have no kind, and other codes are not about arguments.
    let gateway = Gateway::acts([
        error(400, "E_INVALIDARG"),
        error(400, "FABRIC_E_VALUE_EMPTY"),
        bare(400),
    ]);
    let client = gateway.client();
    let service = HealthEntity::Service {
        service_id: "a~s".to_owned(),
    };
    client
        .report_health(&service, &health(), false)
        .await
        .unwrap_err();
    client
        .report_health(&replica(ServiceKind::Stateful), &health(), false)
        .await
        .unwrap_err();
    client
        .report_health(&replica(ServiceKind::Stateful), &health(), false)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn without_a_kind_nothing_is_reported() {
    for kind in [ServiceKind::Invalid, ServiceKind::Other("Odd".into())] {
        let gateway = Gateway::acts([]);
        let error = gateway
            .client()
            .report_health(&replica(kind), &health(), false)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Rejected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_is_made_once() {
    let service = HealthEntity::Service {
        service_id: "a~s".to_owned(),
    };
    let cases = [
        (bare(500), CallErrorKind::Failed),
        (bare(502), CallErrorKind::Unreachable),
        (error(503, "FABRIC_E_NOT_READY"), CallErrorKind::Busy),
        (error(504, "FABRIC_E_TIMEOUT"), CallErrorKind::TimedOut),
        (
            error(409, "FABRIC_E_HEALTH_STALE_REPORT"),
            CallErrorKind::Rejected,
        ),
        (
            error(404, "FABRIC_E_SERVICE_DOES_NOT_EXIST"),
            CallErrorKind::Gone,
        ),
        (bare(403), CallErrorKind::Denied),
        (Act::Hang, CallErrorKind::TimedOut),
    ];
    for (act, kind) in cases {
        let gateway = Gateway::acts([act.clone()]);
        let error = gateway
            .client()
            .report_health(&service, &health(), true)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{act:?}");
        if kind == CallErrorKind::Denied {
            assert!(error.to_string().contains("administrator"), "{error}");
        }
    }
}
