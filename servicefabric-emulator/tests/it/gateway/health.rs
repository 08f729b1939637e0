//! Health queries.

use serde_json::{Value, json};

use super::{Gateway, keys, text};

fn length(value: &Value) -> usize {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
        .len()
}

/// Starts a gateway whose service `Shop~Web` has a warning and an Ok.
async fn with_warning() -> Gateway {
    let gateway = Gateway::start().await;
    for (property, state) in [("Speed", "Warning"), ("Size", "Ok")] {
        let report = json!({
            "SourceId": "Watchdog", "Property": property, "HealthState": state,
            "Description": "as seen",
        });
        gateway
            .post("/Services/Shop~Web/$/ReportHealth?Immediate=true", report)
            .await
            .expect_empty(200);
    }
    gateway
}

#[tokio::test]
async fn every_kind_of_entity_has_its_keys() {
    let gateway = Gateway::start().await;
    let web = gateway.partition("Shop~Web").await;
    let cart = gateway.partition("Shop~Cart").await;
    let instance = gateway.replica(&web).await;
    let node = text(&instance["NodeName"]);
    let instance = text(&instance["InstanceId"]);
    let replica = text(&gateway.replica(&cart).await["ReplicaId"]);
    let common = [
        "AggregatedHealthState",
        "HealthEvents",
        "UnhealthyEvaluations",
    ];
    for (path, own) in [
        (
            "/$/GetClusterHealth".to_owned(),
            &[
                "ApplicationHealthStates",
                "HealthStatistics",
                "NodeHealthStates",
            ][..],
        ),
        ("/Nodes/_Node_0/$/GetHealth".to_owned(), &["Name"]),
        (
            "/Applications/Shop/$/GetHealth".to_owned(),
            &[
                "DeployedApplicationHealthStates",
                "HealthStatistics",
                "Name",
                "ServiceHealthStates",
            ],
        ),
        (
            "/Services/Shop~Web/$/GetHealth".to_owned(),
            &["HealthStatistics", "Name", "PartitionHealthStates"],
        ),
        (
            format!("/Partitions/{web}/$/GetHealth"),
            &["HealthStatistics", "PartitionId", "ReplicaHealthStates"],
        ),
        (
            format!("/Partitions/{web}/$/GetReplicas/{instance}/$/GetHealth"),
            &["InstanceId", "PartitionId", "ServiceKind"],
        ),
        (
            format!("/Partitions/{cart}/$/GetReplicas/{replica}/$/GetHealth"),
            &["PartitionId", "ReplicaId", "ServiceKind"],
        ),
        (
            format!("/Nodes/{node}/$/GetApplications/Shop/$/GetHealth"),
            &[
                "DeployedServicePackageHealthStates",
                "HealthStatistics",
                "Name",
                "NodeName",
            ],
        ),
        (
            format!("/Nodes/{node}/$/GetApplications/Shop/$/GetServicePackages/WebPkg/$/GetHealth"),
            &["ApplicationName", "NodeName", "ServiceManifestName"],
        ),
    ] {
        let mut expected: Vec<&str> = common.iter().chain(own).copied().collect();
        expected.sort_unstable();
        for method in ["GET", "POST"] {
            let reply = gateway.send(method, &path, "").await;
            assert_eq!(reply.status, 200, "{method} {path}: {}", reply.json);
            assert_eq!(keys(&reply.json), expected, "{method} {path}");
            assert_eq!(reply.json["AggregatedHealthState"], "Ok", "{path}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_below_shows_above() {
    let gateway = with_warning().await;
    for path in [
        "/$/GetClusterHealth",
        "/Applications/Shop/$/GetHealth",
        "/Services/Shop~Web/$/GetHealth",
    ] {
        let health = gateway.get(path).await.json;
        assert_eq!(health["AggregatedHealthState"], "Warning", "{path}");
        assert_ne!(length(&health["UnhealthyEvaluations"]), 0, "{path}");
    }
    let application = gateway.get("/Applications/Shop").await.json;
    assert_eq!(application["HealthState"], "Warning");
    let other = gateway.get("/Applications/Meters~North").await.json;
    assert_eq!(other["HealthState"], "Ok");

    let service = gateway.get("/Services/Shop~Web/$/GetHealth").await.json;
    let evaluation = &service["UnhealthyEvaluations"][0]["HealthEvaluation"];
    assert_eq!(evaluation["Kind"], "Event");
    assert_eq!(evaluation["UnhealthyEvent"]["Property"], "Speed");
    let sentence = text(&evaluation["Description"]);
    assert!(
        sentence.starts_with("'Watchdog' reported Warning for property 'Speed'."),
        "{sentence}"
    );
    let application = gateway.get("/Applications/Shop/$/GetHealth").await.json;
    let evaluation = &application["UnhealthyEvaluations"][0]["HealthEvaluation"];
    assert_eq!(evaluation["Kind"], "Services");
    let inner = &evaluation["UnhealthyEvaluations"][0]["HealthEvaluation"];
    assert_eq!(inner["Kind"], "Service");
    assert_eq!(inner["ServiceName"], "fabric:/Shop/Web");
}

#[tokio::test]
async fn events_have_their_keys() {
    let gateway = with_warning().await;
    let service = gateway.get("/Services/Shop~Web/$/GetHealth").await.json;
    let event = service["HealthEvents"]
        .as_array()
        .and_then(|events| events.iter().find(|event| event["Property"] == "Speed"))
        .expect("it was reported");
    assert_eq!(
        keys(event),
        [
            "Description",
            "HealthState",
            "IsExpired",
            "LastErrorTransitionAt",
            "LastModifiedUtcTimestamp",
            "LastOkTransitionAt",
            "LastWarningTransitionAt",
            "Property",
            "RemoveWhenExpired",
            "SequenceNumber",
            "SourceId",
            "SourceUtcTimestamp",
            "TimeToLiveInMilliSeconds",
        ]
    );
    assert_eq!(
        event["TimeToLiveInMilliSeconds"],
        "P10675199DT2H48M5.4775807S"
    );
    assert_eq!(event["LastErrorTransitionAt"], "0001-01-01T00:00:00.000Z");
    assert_eq!(
        event["LastWarningTransitionAt"],
        event["SourceUtcTimestamp"]
    );
}

#[tokio::test]
async fn filters_choose_events_and_children() {
    let gateway = with_warning().await;
    let path = "/Services/Shop~Web/$/GetHealth";
    for (filter, watched) in [
        ("0", 2),
        ("1", 0),
        ("2", 1),
        ("4", 1),
        ("6", 2),
        ("8", 0),
        ("65535", 2),
    ] {
        let health = gateway
            .get(&format!("{path}?EventsHealthStateFilter={filter}"))
            .await
            .json;
        let events = health["HealthEvents"].as_array().into_iter().flatten();
        let found = events
            .filter(|event| event["SourceId"] == "Watchdog")
            .count();
        assert_eq!(found, watched, "{filter}");
    }
    let application = "/Applications/Shop/$/GetHealth";
    for (filter, services) in [("1", 0), ("2", 3), ("4", 1), ("0", 4)] {
        let health = gateway
            .get(&format!("{application}?ServicesHealthStateFilter={filter}"))
            .await
            .json;
        assert_eq!(length(&health["ServiceHealthStates"]), services, "{filter}");
    }
    let none = gateway
        .get("/$/GetClusterHealth?NodesHealthStateFilter=1&ApplicationsHealthStateFilter=12")
        .await
        .json;
    assert_eq!(length(&none["NodeHealthStates"]), 0);
    assert_eq!(length(&none["ApplicationHealthStates"]), 1);
    for filter in ["-1", "warning", "4294967296"] {
        let reply = gateway
            .get(&format!("{path}?EventsHealthStateFilter={filter}"))
            .await;
        reply.expect_error(400, "E_INVALIDARG");
    }
}

#[tokio::test]
async fn statistics_count_what_is_below() {
    let gateway = with_warning().await;
    let health = gateway.get("/Applications/Shop/$/GetHealth").await.json;
    let counts = health["HealthStatistics"]["HealthStateCountList"]
        .as_array()
        .and_then(|counts| counts.iter().find(|count| count["EntityKind"] == "Service"))
        .expect("services are below an application");
    assert_eq!(
        counts["HealthStateCount"],
        json!({"OkCount": 3, "WarningCount": 1, "ErrorCount": 0})
    );
    let without = gateway
        .get("/Applications/Shop/$/GetHealth?ExcludeHealthStatistics=true")
        .await
        .json;
    assert!(without.get("HealthStatistics").is_none());
}

#[tokio::test]
async fn a_policy_may_take_warnings_for_errors() {
    let gateway = with_warning().await;
    let strict = json!({"ConsiderWarningAsError": true});
    for (path, policy) in [
        ("/Services/Shop~Web/$/GetHealth", strict.clone()),
        ("/Applications/Shop/$/GetHealth", strict.clone()),
        (
            "/$/GetClusterHealth",
            json!({"ClusterHealthPolicy": strict}),
        ),
    ] {
        let reply = gateway.post(path, &policy).await;
        assert_eq!(reply.json["AggregatedHealthState"], "Error", "{path}");
        let lenient = gateway.post(path, json!({})).await;
        assert_eq!(lenient.json["AggregatedHealthState"], "Warning", "{path}");
        gateway
            .post(path, "{")
            .await
            .expect_error(400, "E_INVALIDARG");
    }
}

#[tokio::test]
async fn chunks_have_what_their_filters_want() {
    let gateway = with_warning().await;
    let path = "/$/GetClusterHealthChunk";
    let empty = json!({
        "HealthState": "Warning",
        "NodeHealthStateChunks": {"TotalCount": 0, "Items": []},
        "ApplicationHealthStateChunks": {"TotalCount": 0, "Items": []},
    });
    assert_eq!(gateway.get(path).await.json, empty);
    assert_eq!(gateway.post(path, "").await.json, empty);

    let chunk = gateway
        .post(
            path,
            json!({
                "NodeFilters": [{"HealthStateFilter": 65535}],
                "ApplicationFilters": [{
                    "ApplicationNameFilter": "fabric:/Shop",
                    "ServiceFilters": [{
                        "HealthStateFilter": 4,
                        "PartitionFilters": [{
                            "HealthStateFilter": 65535,
                            "ReplicaFilters": [{"HealthStateFilter": 65535}],
                        }],
                    }],
                    "DeployedApplicationFilters": [{
                        "HealthStateFilter": 65535,
                        "DeployedServicePackageFilters": [{"HealthStateFilter": 65535}],
                    }],
                }],
            }),
        )
        .await
        .json;
    assert_eq!(chunk["NodeHealthStateChunks"]["TotalCount"], 3);
    assert_eq!(
        chunk["NodeHealthStateChunks"]["Items"][0],
        json!({"HealthState": "Ok", "NodeName": "_Node_0"})
    );
    let applications = &chunk["ApplicationHealthStateChunks"];
    assert_eq!(applications["TotalCount"], 1);
    let shop = &applications["Items"][0];
    assert_eq!(shop["ApplicationTypeName"], "ShopType");
    let services = &shop["ServiceHealthStateChunks"];
    assert_eq!(length(&services["Items"]), 1);
    assert_eq!(services["Items"][0]["ServiceName"], "fabric:/Shop/Web");
    let partition = &services["Items"][0]["PartitionHealthStateChunks"]["Items"][0];
    assert_eq!(length(&partition["ReplicaHealthStateChunks"]["Items"]), 2);
    assert_ne!(
        length(&shop["DeployedApplicationHealthStateChunks"]["Items"]),
        0
    );
    for wrong in [
        json!({"NodeFilters": 1}),
        json!({"ApplicationFilters": [{"ApplicationNameFilter": "Shop"}]}),
        json!({"ApplicationFilters": [{"ServiceFilters": [{"PartitionFilters": [{"PartitionIdFilter": "x"}]}]}]}),
    ] {
        let reply = gateway.post(path, &wrong).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.json);
    }
}
