//! Tests of requests, byte by byte.

use discovery_servicefabric::ClusterCalls;
use discovery_servicefabric::client::Client;
use discovery_servicefabric::model::{
    ClusterHealthChunk, PartitionInformation, PartitionKind, ReplicaStatus, ServiceKind,
};
use serde_json::{Value, json};

use crate::client::support::{Gateway, ok, page};

const GUID: &str = "cf4a5e05-e1b1-4b2a-8f17-6e2c3a8c4a11";

/// Returns the only request of a call with the response `body`.
async fn request<F, T, E: std::fmt::Debug>(
    body: Value,
    call: impl FnOnce(Client) -> F,
) -> (String, T)
where
    F: Future<Output = Result<T, E>>,
{
    let gateway = Gateway::acts([ok(body)]);
    let answer = call(gateway.client()).await.unwrap();
    let seen = gateway.seen();
    assert_eq!(seen.len(), 1);
    (format!("{} {}", seen[0].method, seen[0].target()), answer)
}

#[tokio::test]
async fn lists_are_asked_for_as_the_reference_says() {
    let empty = json!({"ContinuationToken": "", "Items": []});

    let (asked, _) = request(
        empty.clone(),
        |c| async move { c.application_types().await },
    )
    .await;
    assert_eq!(asked, "GET /ApplicationTypes?api-version=6.0&timeout=30");

    let (asked, _) = request(empty.clone(), |c| async move { c.applications().await }).await;
    assert_eq!(asked, "GET /Applications?api-version=6.1&timeout=30");

    let (asked, _) = request(json!([]), |c| async move {
        c.service_types("Shop Type", "1.0 beta&x").await
    })
    .await;
    assert_eq!(
        asked,
        "GET /ApplicationTypes/Shop%20Type/$/GetServiceTypes?api-version=6.0&ApplicationTypeVersion=1.0%20beta%26x&timeout=30"
    );

    let (asked, _) = request(empty.clone(), |c| async move { c.services("Shop").await }).await;
    assert_eq!(
        asked,
        "GET /Applications/Shop/$/GetServices?api-version=6.0&timeout=30"
    );

    let (asked, _) = request(
        empty.clone(),
        |c| async move { c.partitions("Shop~Web").await },
    )
    .await;
    assert_eq!(
        asked,
        "GET /Services/Shop~Web/$/GetPartitions?api-version=6.4&timeout=30"
    );

    let (asked, _) = request(empty.clone(), |c| async move { c.replicas(GUID).await }).await;
    assert_eq!(
        asked,
        format!("GET /Partitions/{GUID}/$/GetReplicas?api-version=6.0&timeout=30")
    );

    let properties = json!({"ContinuationToken": "", "IsConsistent": true, "Properties": []});
    let (asked, _) = request(
        properties,
        |c| async move { c.properties("Shop~Web").await },
    )
    .await;
    assert_eq!(
        asked,
        "GET /Names/Shop~Web/$/GetProperties?api-version=6.0&IncludeValues=true&timeout=30"
    );
}

#[tokio::test]
async fn single_things_are_asked_for_as_the_reference_says() {
    let (asked, manifest) = request(json!({"Manifest": "<ServiceManifest/>"}), |c| async move {
        c.service_manifest("T", "1.0", "WebPkg").await
    })
    .await;
    assert_eq!(
        asked,
        "GET /ApplicationTypes/T/$/GetServiceManifest?api-version=6.0&ApplicationTypeVersion=1.0&ServiceManifestName=WebPkg&timeout=30"
    );
    assert_eq!(manifest, "<ServiceManifest/>");

    let (asked, version) = request(json!({"Version": "9.1.1833.9590"}), |c| async move {
        c.cluster_version().await
    })
    .await;
    assert_eq!(asked, "GET /$/GetClusterVersion?api-version=6.4&timeout=30");
    assert_eq!(version, "9.1.1833.9590");

    let metadata = json!({"type": "aad", "metadata": {"authority": "https://login/t", "cluster": "app", "tenant": "t"}});
    let (asked, metadata) = request(metadata, |c| async move { c.aad_metadata().await }).await;
    assert_eq!(asked, "GET /$/GetAadMetadata?api-version=6.0&timeout=30");
    assert_eq!(metadata.unwrap().cluster, "app");
    let (_, metadata) = request(json!({"type": "", "metadata": null}), |c| async move {
        c.aad_metadata().await
    })
    .await;
    assert_eq!(metadata, None);
}

fn information(kind: PartitionKind) -> PartitionInformation {
    let mut information = PartitionInformation::default();
    information.service_partition_kind = kind;
    information
}

#[tokio::test]
async fn partitions_are_resolved_by_their_keys() {
    let answer = json!({
        "Name": "fabric:/Shop/Web", "Version": "1:2:3",
        "PartitionInformation": {"ServicePartitionKind": "Singleton", "Id": GUID},
        "Endpoints": [{"Kind": "Stateless", "Address": "{\"Endpoints\":{}}"}],
    });
    let mut range = information(PartitionKind::Int64Range);
    range.low_key = Some(i64::MIN);
    range.high_key = Some(-1);
    let mut named = information(PartitionKind::Named);
    named.name = Some("eu & us".to_owned());
    let cases = [
        (information(PartitionKind::Singleton), None, ""),
        (
            range.clone(),
            None,
            "&PartitionKeyType=2&PartitionKeyValue=-9223372036854775808",
        ),
        (
            named,
            Some("13:7"),
            "&PartitionKeyType=3&PartitionKeyValue=eu%20%26%20us&PreviousRspVersion=13:7",
        ),
    ];
    for (partition, previous, arguments) in cases {
        let (asked, resolved) = request(answer.clone(), |c| async move {
            c.resolve("Shop~Web", &partition, previous).await
        })
        .await;
        assert_eq!(
            asked,
            format!(
                "GET /Services/Shop~Web/$/ResolvePartition?api-version=6.0{arguments}&timeout=30"
            )
        );
        assert_eq!(resolved.version, "1:2:3");
        assert_eq!(resolved.endpoints.len(), 1);
    }
    range.low_key = None;
    for keyless in [
        range,
        information(PartitionKind::Named),
        information(PartitionKind::Invalid),
    ] {
        let gateway = Gateway::acts([]);
        let error = gateway
            .client()
            .resolve("Shop~Web", &keyless, None)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no key"), "{error}");
    }
}

#[tokio::test]
async fn the_health_of_the_whole_cluster_names_all_replicas() {
    let gateway = Gateway::acts([ok(
        json!({"HealthState": "Ok", "ApplicationHealthStateChunks": {"TotalCount": 1, "Items": [
        {"ApplicationName": "fabric:/Shop", "ServiceHealthStateChunks": {"Items": [
            {"ServiceName": "fabric:/Shop/Web", "PartitionHealthStateChunks": {"Items": [
                {"PartitionId": GUID, "ReplicaHealthStateChunks": {"Items": [{"ReplicaOrInstanceId": "132", "HealthState": "Ok"}]}}]}}]}}]}}),
    )]);
    let services = gateway.client().replica_ids().await.unwrap();
    assert_eq!(services.len(), 1);
    assert_eq!(services[0].service, "fabric:/Shop/Web");
    assert_eq!(services[0].partitions, [(GUID.to_owned(), vec![132])]);
    let seen = &gateway.seen()[0];
    assert_eq!(seen.method, "POST");
    assert_eq!(
        seen.target(),
        "/$/GetClusterHealthChunk?api-version=6.0&timeout=30"
    );
    assert_eq!(
        seen.content_type.as_deref(),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(seen.body, ClusterHealthChunk::QUERY);
}

#[tokio::test]
async fn both_shapes_of_a_list_are_read() {
    let items = json!([
        {"ServiceKind": "Stateless", "InstanceId": "131", "ReplicaStatus": "Ready", "HealthState": "Ok",
         "NodeName": "n1", "Address": "{\"Endpoints\":{\"\":\"http://10.0.0.1:80\"}}", "LastInBuildDurationInSeconds": "2"},
        {"ServiceKind": "Stateful", "ReplicaId": "132", "ReplicaRole": "Primary", "ReplicaStatus": "Wobbling", "Address": null},
    ]);
    for act in [ok(items.clone()), page(items, "")] {
        let gateway = Gateway::acts([act]);
        let replicas = gateway.client().replicas(GUID).await.unwrap();
        assert_eq!(replicas.len(), 2);
        assert_eq!(
            (replicas[0].replica_id, &replicas[0].service_kind),
            (131, &ServiceKind::Stateless)
        );
        assert_eq!(
            replicas[1].replica_status,
            ReplicaStatus::Other("Wobbling".into())
        );
        assert_eq!(replicas[1].address, "");
    }
}

#[tokio::test]
async fn ids_from_elsewhere_cannot_change_the_path() {
    for id in ["", ".", "..", "%2e%2E"] {
        let gateway = Gateway::acts([]);
        let error = gateway.client().services(id).await.unwrap_err();
        assert!(error.to_string().contains("an id is empty"), "{error}");
        assert!(!error.is_gone());
    }
    let (asked, _) = request(json!([]), |c| async move { c.services("../x?y=1#z").await }).await;
    assert_eq!(
        asked,
        "GET /Applications/..~x%3Fy=1%23z/$/GetServices?api-version=6.0&timeout=30"
    );
}
