//! Calls that change the cluster.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Gateway, SETTLED, text};

#[tokio::test]
async fn applications_and_services_come_and_go() {
    let gateway = Gateway::start().await;
    let application = json!({
        "Name": "fabric:/Shop2", "TypeName": "ShopType", "TypeVersion": "1.0.0",
        "ParameterList": [{"Key": "Host", "Value": "b"}],
        "ApplicationCapacity": {"MinimumNodes": 0, "MaximumNodes": 0},
    });
    gateway
        .post("/Applications/$/Create", &application)
        .await
        .expect_empty(201);
    gateway
        .post("/Applications/$/Create", &application)
        .await
        .expect_error(409, "FABRIC_E_APPLICATION_ALREADY_EXISTS");
    let service = json!({
        "ApplicationName": "fabric:/Shop2", "ServiceName": "fabric:/Shop2/New",
        "ServiceTypeName": "WebType", "PartitionDescription": {"PartitionScheme": "Singleton"},
        "IsDefaultMoveCostSpecified": false, "ServiceKind": "Stateless", "InstanceCount": 1,
    });
    let path = "/Applications/Shop2/$/GetServices/$/Create";
    gateway.post(path, &service).await.expect_empty(202);
    gateway
        .post(path, &service)
        .await
        .expect_error(409, "FABRIC_E_SERVICE_ALREADY_EXISTS");
    gateway.emulator.advance(SETTLED);
    let partition = gateway.partition("Shop2~New").await;
    let instance = gateway.replica(&partition).await;
    assert_eq!(instance["ReplicaStatus"], "Ready");

    gateway
        .post(
            "/Services/Shop2~New/$/Update",
            json!({"ServiceKind": "Stateless", "Flags": "1", "InstanceCount": 3}),
        )
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    let path = format!("/Partitions/{partition}/$/GetReplicas");
    assert_eq!(gateway.items(&path).await.len(), 3);

    gateway
        .post("/Services/Shop2~New/$/Delete", "")
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    let gone = gateway
        .get("/Applications/Shop2/$/GetServices/Shop2~New")
        .await;
    gone.expect_empty(204);
    gateway
        .post("/Applications/Shop2/$/Delete?ForceRemove=true", "")
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    gateway.get("/Applications/Shop2").await.expect_empty(204);
}

#[tokio::test]
async fn stateful_services_are_divided_as_they_say() {
    let gateway = Gateway::start().await;
    let path = "/Applications/Shop/$/GetServices/$/Create";
    let service = |name: &str, scheme| {
        json!({
            "ServiceName": name, "ServiceTypeName": "CartType", "ServiceKind": "Stateful",
            "PartitionDescription": scheme, "TargetReplicaSetSize": 1, "MinReplicaSetSize": 1,
            "HasPersistedState": true,
        })
    };
    let ranges =
        json!({"PartitionScheme": "UniformInt64Range", "Count": 3, "LowKey": "-10", "HighKey": 10});
    gateway
        .post(path, service("fabric:/Shop/Ranges", ranges))
        .await
        .expect_empty(202);
    let names = json!({"PartitionScheme": "Named", "Count": 2, "Names": ["a", "b"]});
    gateway
        .post(path, service("fabric:/Shop/Names", names))
        .await
        .expect_empty(202);
    for (service, count) in [("Shop~Ranges", 3), ("Shop~Names", 2)] {
        let partitions = gateway
            .items(&format!("/Services/{service}/$/GetPartitions"))
            .await;
        assert_eq!(partitions.len(), count, "{service}");
    }
}

#[tokio::test]
async fn bodies_that_make_no_sense_are_rejected() {
    let gateway = Gateway::start().await;
    let create = "/Applications/Shop/$/GetServices/$/Create";
    let service = json!({
        "ServiceName": "fabric:/Shop/New", "ServiceTypeName": "WebType", "InstanceCount": 1,
        "ServiceKind": "Stateless", "PartitionDescription": {"PartitionScheme": "Singleton"},
    });
    let with = |member: &str, value: Value| {
        let mut service = service.clone();
        service[member] = value;
        service
    };
    for (path, body, status, code) in [
        (
            create,
            with("ServiceKind", json!("Both")),
            400,
            "E_INVALIDARG",
        ),
        (
            create,
            with("ServiceName", json!("Shop/New")),
            400,
            "FABRIC_E_INVALID_NAME_URI",
        ),
        (
            create,
            with("InstanceCount", json!(null)),
            400,
            "FABRIC_E_VALUE_EMPTY",
        ),
        (
            create,
            with("ApplicationName", json!("fabric:/Other")),
            400,
            "E_INVALIDARG",
        ),
        (
            create,
            with("PartitionDescription", json!({"PartitionScheme": "Thirds"})),
            400,
            "E_INVALIDARG",
        ),
        (
            create,
            with(
                "PartitionDescription",
                json!({"PartitionScheme": "Named", "Count": 3, "Names": ["a"]}),
            ),
            400,
            "E_INVALIDARG",
        ),
        (create, json!(1), 400, "E_INVALIDARG"),
        (
            "/Applications/$/Create",
            json!({"Name": "fabric:/X"}),
            400,
            "E_INVALIDARG",
        ),
        (
            "/Applications/$/Create",
            json!({"Name": "fabric:/X", "TypeName": "NoType", "TypeVersion": "1"}),
            404,
            "FABRIC_E_APPLICATION_TYPE_NOT_FOUND",
        ),
        (
            "/Nodes/_Node_0/$/Deactivate",
            json!({"DeactivationIntent": "Nap"}),
            400,
            "E_INVALIDARG",
        ),
        (
            "/Nodes/_Node_9/$/Deactivate",
            json!({"DeactivationIntent": "Pause"}),
            404,
            "FABRIC_E_NODE_NOT_FOUND",
        ),
        (
            "/Services/Shop~Web/$/Update",
            json!({"ServiceKind": "Stateful", "TargetReplicaSetSize": 3}),
            400,
            "E_INVALIDARG",
        ),
        (
            "/Services/Shop~Nothing/$/Update",
            json!({"ServiceKind": "Stateless", "InstanceCount": 3}),
            404,
            "FABRIC_E_SERVICE_DOES_NOT_EXIST",
        ),
    ] {
        let reply = gateway.post(path, &body).await;
        assert_eq!(
            (reply.status, reply.code()),
            (status, code),
            "{path} {body}: {}",
            reply.json
        );
    }
}

#[tokio::test]
async fn types_are_provisioned_and_unprovisioned() {
    let gateway = Gateway::start().await;
    let provision = |later: bool| {
        json!({
            "Kind": "ExternalStore", "Async": later, "ApplicationPackageDownloadUri": "https://store.example/shop",
            "ApplicationTypeName": "ShopType", "ApplicationTypeVersion": "3.0.0",
        })
    };
    let path = "/ApplicationTypes/$/Provision";
    gateway.post(path, provision(true)).await.expect_empty(202);
    gateway
        .post(path, provision(false))
        .await
        .expect_error(409, "FABRIC_E_APPLICATION_TYPE_ALREADY_EXISTS");
    let path = "/ApplicationTypes/ShopType/$/Unprovision";
    gateway
        .post(path, json!({"ApplicationTypeVersion": "3.0.0"}))
        .await
        .expect_empty(200);
    gateway
        .post(path, json!({"ApplicationTypeVersion": "1.0.0"}))
        .await
        .expect_error(409, "FABRIC_E_APPLICATION_TYPE_IN_USE");
}

#[tokio::test]
async fn nodes_are_deactivated_and_activated() {
    let gateway = Gateway::start().await;
    let path = "/Nodes/_Node_1";
    gateway
        .post(
            &format!("{path}/$/Deactivate"),
            json!({"DeactivationIntent": "Restart"}),
        )
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    let node = gateway.get(path).await.json;
    assert_eq!(node["NodeStatus"], "Disabled");
    assert_eq!(
        node["NodeDeactivationInfo"]["NodeDeactivationIntent"],
        "Restart"
    );
    for (filter, count) in [
        ("disabled", 1),
        ("up", 2),
        ("down", 0),
        ("all", 3),
        ("default", 3),
        ("removed", 0),
        ("Disabled", 1),
    ] {
        let nodes = gateway
            .items(&format!("/Nodes?NodeStatusFilter={filter}"))
            .await;
        assert_eq!(nodes.len(), count, "{filter}");
    }
    gateway
        .get("/Nodes?NodeStatusFilter=asleep")
        .await
        .expect_error(400, "E_INVALIDARG");
    gateway
        .post(&format!("{path}/$/Activate"), "")
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    assert_eq!(gateway.get(path).await.json["NodeStatus"], "Up");
}

#[tokio::test]
async fn replicas_are_moved_restarted_and_removed() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Cart").await;
    let primary = |replicas: &[Value]| {
        let found = replicas
            .iter()
            .find(|replica| replica["ReplicaRole"] == "Primary");
        text(&found.expect("there is a primary")["NodeName"])
    };
    let path = format!("/Partitions/{partition}/$/GetReplicas");
    let before = gateway.items(&path).await;
    let other = before
        .iter()
        .find(|replica| replica["ReplicaRole"] == "ActiveSecondary")
        .expect("there are secondaries");
    let target = text(&other["NodeName"]);
    gateway
        .post(
            &format!("/Partitions/{partition}/$/MovePrimaryReplica?NodeName={target}"),
            "",
        )
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    assert_eq!(primary(&gateway.items(&path).await), target);

    let id = text(&other["ReplicaId"]);
    let on_node = format!("/Nodes/{target}/$/GetPartitions/{partition}/$/GetReplicas/{id}");
    gateway
        .post(&format!("{on_node}/$/Restart"), "")
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    assert_eq!(gateway.items(&path).await.len(), 3);

    let web = gateway.partition("Shop~Web").await;
    let instance = gateway.replica(&web).await;
    let (node, id) = (text(&instance["NodeName"]), text(&instance["InstanceId"]));
    gateway
        .post(
            &format!(
                "/Nodes/{node}/$/GetPartitions/{web}/$/GetReplicas/{id}/$/Delete?ForceRemove=true"
            ),
            "",
        )
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    let instances = gateway
        .items(&format!("/Partitions/{web}/$/GetReplicas"))
        .await;
    assert_eq!(instances.len(), 2);
    assert!(
        instances
            .iter()
            .all(|instance| instance["InstanceId"] != id.as_str())
    );

    let taken: Vec<String> = instances
        .iter()
        .map(|instance| text(&instance["NodeName"]))
        .collect();
    let free = ["_Node_0", "_Node_1", "_Node_2"]
        .into_iter()
        .find(|node| !taken.iter().any(|taken| taken == node))
        .expect("two instances leave one of three nodes free");
    let from = &taken[0];
    gateway
        .post(
            &format!(
                "/Services/Shop~Web/$/GetPartitions/{web}/$/MoveInstance?CurrentNodeName={from}&NewNodeName={free}"
            ),
            "",
        )
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    let nodes: Vec<String> = gateway
        .items(&format!("/Partitions/{web}/$/GetReplicas"))
        .await
        .iter()
        .map(|instance| text(&instance["NodeName"]))
        .collect();
    assert!(nodes.iter().any(|node| node == free), "{nodes:?}");
}

#[tokio::test]
async fn code_packages_are_restarted() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let node = text(&gateway.replica(&partition).await["NodeName"]);
    let path = format!("/Nodes/{node}/$/GetApplications/Shop/$/GetCodePackages");
    let restart = |instance: &str| {
        json!({
            "ServiceManifestName": "WebPkg", "CodePackageName": "Code", "CodePackageInstanceId": instance,
        })
    };
    gateway
        .post(&format!("{path}/$/Restart"), restart("0"))
        .await
        .expect_empty(200);
    gateway.emulator.advance(Duration::from_secs(60));
    let code = gateway
        .get(&format!("{path}?ServiceManifestName=WebPkg"))
        .await
        .json;
    let statistics = &code[0]["MainEntryPoint"]["CodePackageEntryPointStatistics"];
    assert_eq!(statistics["ExitCount"], "1");
    assert_eq!(code[0]["MainEntryPoint"]["Status"], "Started");
    gateway
        .post(&format!("{path}/$/Restart"), restart("123456"))
        .await
        .expect_error(409, "FABRIC_E_INSTANCE_ID_MISMATCH");
}

#[tokio::test]
async fn applications_are_upgraded_domain_by_domain() {
    let gateway = Gateway::start().await;
    gateway
        .get("/Applications/Shop/$/GetUpgradeProgress")
        .await
        .expect_error(400, "FABRIC_E_APPLICATION_NOT_UPGRADING");
    gateway
        .post(
            "/Applications/Shop/$/Upgrade",
            json!({
                "Name": "fabric:/Shop", "TargetApplicationTypeVersion": "2.0.0", "Parameters": [],
                "UpgradeKind": "Rolling", "RollingUpgradeMode": "UnmonitoredAuto",
            }),
        )
        .await
        .expect_empty(200);
    for _ in 0..20 {
        gateway.emulator.advance(SETTLED);
    }
    let progress = gateway
        .get("/Applications/Shop/$/GetUpgradeProgress")
        .await
        .json;
    assert_eq!(progress["UpgradeState"], "RollingForwardCompleted");
    assert_eq!(progress["TargetApplicationTypeVersion"], "2.0.0");
    assert!(
        progress["UpgradeDomains"]
            .as_array()
            .is_some_and(|domains| domains.iter().all(|domain| domain["State"] == "Completed"))
    );
    let application = gateway.get("/Applications/Shop").await.json;
    assert_eq!(application["TypeVersion"], "2.0.0");
}

#[tokio::test]
async fn what_an_upgrade_is_told_is_done_or_rejected() {
    let gateway = Gateway::start().await;
    let body = |more: Value| {
        let mut body = json!({
            "Name": "fabric:/Shop", "TargetApplicationTypeVersion": "2.0.0", "Parameters": [],
            "UpgradeKind": "Rolling", "RollingUpgradeMode": "Monitored",
        });
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        body
    };
    for rejected in [
        json!({"ForceRestart": true}),
        json!({"MonitoringPolicy": {"FailureAction": "Explode"}}),
        json!({"MonitoringPolicy": {"UpgradeTimeoutInMilliseconds": "soon"}}),
    ] {
        gateway
            .post("/Applications/Shop/$/Upgrade", body(rejected))
            .await
            .expect_error(400, "E_INVALIDARG");
    }
    let policy = json!({
        "FailureAction": "Manual", "HealthCheckWaitDurationInMilliseconds": "PT1H",
        "UpgradeTimeoutInMilliseconds": "PT0H0M30S",
    });
    gateway
        .post(
            "/Applications/Shop/$/Upgrade",
            body(json!({"ForceRestart": false, "MonitoringPolicy": policy})),
        )
        .await
        .expect_empty(200);
    gateway.emulator.advance(Duration::from_secs(40));
    let path = "/Applications/Shop/$/GetUpgradeProgress";
    let progress = gateway.get(path).await.json;
    assert_eq!(progress["UpgradeState"], "RollingForwardPending");
    assert_eq!(progress["RollingUpgradeMode"], "UnmonitoredManual");
    assert_eq!(progress["FailureReason"], "OverallUpgradeTimeout");
    assert_ne!(progress["FailureTimestampUtc"], "0001-01-01T00:00:00.000Z");
    gateway
        .post("/Applications/Shop/$/RollbackUpgrade", json!({}))
        .await
        .expect_empty(200);
    let progress = gateway.get(path).await.json;
    assert_eq!(progress["FailureReason"], "Interrupted");
    // The one domain that has begun is rolled back, with the same wait.
    gateway.emulator.advance(Duration::from_secs(2 * 3600));
    let progress = gateway.get(path).await.json;
    assert_eq!(progress["UpgradeState"], "RollingBackCompleted");
    assert_ne!(
        progress["UpgradeDomainDurationInMilliseconds"],
        progress["UpgradeDurationInMilliseconds"]
    );
}
