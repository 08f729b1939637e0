//! Every call of discovery.

use discovery_servicefabric::model::{
    HealthInformation, HealthState, PartitionKind, ReplicaStatus, ServiceKind,
};
use discovery_servicefabric::{
    CallErrorKind, ClusterCalls, HealthEntity, ServiceReplicas, id_of, name_of,
};
use servicefabric_emulator::gateway::Dialect;

use super::{builder, client, start};

#[tokio::test]
async fn the_whole_cluster_is_read_page_by_page() {
    for (dialect, page) in [
        (Dialect::Current, 1),
        (Dialect::Runtime64, 1),
        (Dialect::Current, 1_000),
    ] {
        let emulator = start(builder().dialect(dialect).page_size(page)).await;
        let client = client(&emulator);
        assert!(client.cluster_version().await.unwrap().starts_with("9.1"));

        let mut types = client.application_types().await.unwrap();
        types.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<_> = types.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["Meter Type", "ShopType"]);
        assert_eq!(types[1].default_parameter_list[0].value, "shop.invalid");
        for t in &types {
            for service_type in client.service_types(&t.name, &t.version).await.unwrap() {
                let manifest = &service_type.service_manifest_name;
                let xml = client
                    .service_manifest(&t.name, &t.version, manifest)
                    .await
                    .unwrap();
                let description = service_type.service_type_description;
                assert!(xml.contains(&description.service_type_name), "{xml}");
                assert_eq!(
                    description.is_stateful,
                    description.service_type_name == "CartType"
                );
                let extensions = description.extensions.map_or(0, |list| list.len());
                assert_eq!(
                    extensions,
                    usize::from(description.service_type_name == "WebType")
                );
            }
        }

        let mut seen = Vec::new();
        for application in client.applications().await.unwrap() {
            assert_eq!(application.id, id_of(&application.name));
            for service in client.services(&application.id).await.unwrap() {
                assert_eq!(name_of(&service.id).unwrap(), service.name);
                let mut partitions = Vec::new();
                for partition in client.partitions(&service.id).await.unwrap() {
                    let information = partition.partition_information;
                    let replicas = client.replicas(&information.id).await.unwrap();
                    assert!(!replicas.is_empty(), "{}", service.name);
                    for replica in &replicas {
                        assert_eq!(replica.replica_status, ReplicaStatus::Ready);
                        assert_eq!(replica.service_kind, service.service_kind);
                    }
                    let resolved = client
                        .resolve(&service.id, &information, None)
                        .await
                        .unwrap();
                    assert_eq!(
                        resolved.partition_information.id, information.id,
                        "{}",
                        service.name
                    );
                    assert_eq!(resolved.endpoints.len(), replicas.len());
                    let newer = client.resolve(&service.id, &information, Some(&resolved.version));
                    assert_eq!(newer.await.unwrap().endpoints.len(), replicas.len());
                    let ids = replicas.iter().map(|replica| replica.replica_id).collect();
                    partitions.push((information.id, ids));
                }
                client.properties(&service.id).await.unwrap();
                seen.push(ServiceReplicas::new(service.name, partitions));
            }
        }
        seen.sort_by(|a, b| a.service.cmp(&b.service));
        let names: Vec<_> = seen
            .iter()
            .map(|service| service.service.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "fabric:/Meters/North/Reader",
                "fabric:/Shop/Admin/Web x",
                "fabric:/Shop/Cart",
                "fabric:/Shop/Regions",
                "fabric:/Shop/Web"
            ]
        );
        let mut told = client.replica_ids().await.unwrap();
        told.retain(|service| !service.service.starts_with("fabric:/System"));
        assert_eq!(
            told, seen,
            "the one answer about everything agrees with the walk"
        );
        emulator.shutdown().await;
    }
}

#[tokio::test]
async fn partitions_are_of_every_kind() {
    let emulator = start(builder()).await;
    let client = client(&emulator);
    let cart = client.partitions("Shop~Cart").await.unwrap();
    let mut ranges: Vec<_> = cart
        .iter()
        .map(|partition| &partition.partition_information)
        .map(|information| (information.low_key.unwrap(), information.high_key.unwrap()))
        .collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(0, 49), (50, 99)]);
    let regions = client.partitions("Shop~Regions").await.unwrap();
    let mut names: Vec<_> = regions
        .iter()
        .filter_map(|partition| partition.partition_information.name.as_deref())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["asia", "eu & us"]);
    let web = client.partitions("Shop~Web").await.unwrap();
    assert_eq!(
        web[0].partition_information.service_partition_kind,
        PartitionKind::Singleton
    );
}

#[tokio::test]
async fn what_does_not_exist_is_gone_and_nothing_else_is() {
    let emulator = start(builder()).await;
    let client = client(&emulator);
    let guid = "00000000-0000-0000-0000-00000000abcd";
    for error in [
        client.services("Nope").await.unwrap_err(),
        client.partitions("Shop~Nope").await.unwrap_err(),
        client.replicas(guid).await.unwrap_err(),
        client.service_types("ShopType", "9").await.unwrap_err(),
        client
            .service_manifest("ShopType", "1.0.0", "Nope")
            .await
            .unwrap_err(),
        client.properties("Shop~Nope").await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), CallErrorKind::Gone, "{error}");
        assert!(error.code().is_some(), "{error}");
    }
    let error = client.replicas("not-a-guid").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Rejected, "{error}");
}

#[tokio::test]
async fn failures_in_between_do_not_show() {
    let emulator = start(builder()).await;
    let client = client(&emulator);
    let faults = emulator.faults();
    faults
        .fail_next(2, "/Applications", 503, "FABRIC_E_NO_WRITE_QUORUM")
        .unwrap();
    assert_eq!(client.applications().await.unwrap().len(), 2);
    faults.fail_next(1, "/Applications", 500, "E_FAIL").unwrap();
    assert_eq!(client.applications().await.unwrap().len(), 2);
    faults
        .fail_next(9, "/Applications", 504, "FABRIC_E_TIMEOUT")
        .unwrap();
    assert_eq!(
        client.applications().await.unwrap_err().kind(),
        CallErrorKind::TimedOut
    );
}

#[tokio::test]
async fn reports_change_the_health_of_what_they_are_about() {
    let emulator = start(builder()).await;
    let client = client(&emulator);
    let service = HealthEntity::Service {
        service_id: "Shop~Admin~Web%20x".to_owned(),
    };
    let health_of = async |name: &str| {
        let services = client.services("Shop").await.unwrap();
        services
            .into_iter()
            .find(|service| service.name == name)
            .unwrap()
            .health_state
    };
    let warning = HealthInformation::new("YARP", "DynamicConfig", HealthState::Warning);
    assert_eq!(health_of("fabric:/Shop/Admin/Web x").await, HealthState::Ok);
    client
        .report_health(&service, &warning, true)
        .await
        .unwrap();
    assert_eq!(
        health_of("fabric:/Shop/Admin/Web x").await,
        HealthState::Warning
    );

    for (service, kind) in [
        ("Shop~Web", ServiceKind::Stateless),
        ("Shop~Cart", ServiceKind::Stateful),
    ] {
        let partition = client
            .partitions(service)
            .await
            .unwrap()
            .remove(0)
            .partition_information
            .id;
        let replica = client.replicas(&partition).await.unwrap().remove(0);
        let entity = HealthEntity::Replica {
            partition_id: partition.clone(),
            replica_id: replica.replica_id,
            kind,
        };
        client.report_health(&entity, &warning, true).await.unwrap();
        let replicas = client.replicas(&partition).await.unwrap();
        let reported = replicas
            .iter()
            .find(|now| now.replica_id == replica.replica_id)
            .unwrap();
        assert_eq!(reported.health_state, HealthState::Warning, "{service}");
    }
    let system = HealthInformation::new("System.FM", "State", HealthState::Ok);
    let error = client
        .report_health(&service, &system, true)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Rejected, "{error}");
}
