//! The emulator's own API.

use serde_json::json;
use testkit::raw::RawClient;

use super::{Gateway, SETTLED, keys, text};

#[tokio::test]
async fn the_overview_says_how_things_stand() {
    let gateway = Gateway::start().await;
    let reply = gateway.send_as_written("GET", "/emulator", "").await;
    assert_eq!(
        keys(&reply.json),
        [
            "Cluster",
            "Date",
            "Faults",
            "FaultyAnswers",
            "PageSize",
            "Seconds",
            "Speed"
        ]
    );
    assert_eq!(
        (&reply.json["Seconds"], &reply.json["Speed"]),
        (&json!(600), &json!(0.0))
    );
    assert!(text(&reply.json["Date"]).ends_with('Z'));
}

#[tokio::test]
async fn time_is_moved() {
    let gateway = Gateway::start().await;
    let reply = gateway
        .post("/emulator/time/advance", json!({"By": "90s"}))
        .await;
    assert_eq!((reply.status, &reply.json["Seconds"]), (200, &json!(690)));
    let node = gateway.get("/Nodes/_Node_0").await.json;
    assert_eq!(node["NodeUpTimeInSeconds"], "690");
    for body in [
        json!({"By": "infinite"}),
        json!({"By": -1}),
        json!({}),
        json!({"By": 1, "And": 2}),
    ] {
        gateway
            .post("/emulator/time/advance", body)
            .await
            .expect_error(400, "E_INVALIDARG");
    }
}

#[tokio::test]
async fn faults_are_injected_listed_and_cleared() {
    let gateway = Gateway::start().await;
    let fault = json!({
        "Path": "/Nodes*", "Method": "GET", "Times": 1,
        "Action": {"Kind": "Fail", "Status": 503, "Code": "FABRIC_E_NOT_READY"},
    });
    let reply = gateway.post("/emulator/faults", &fault).await;
    assert_eq!(reply.json.as_array().map(Vec::len), Some(1));
    gateway
        .get("/Nodes")
        .await
        .expect_error(503, "FABRIC_E_NOT_READY");
    assert_eq!(gateway.get("/emulator/faults").await.json, json!([]));
    for _ in 0..2 {
        let forever = json!({"Path": "*", "Action": {"Kind": "Empty", "Status": 500}});
        gateway.post("/emulator/faults", forever).await;
    }
    gateway.get("/Nodes").await.expect_empty(500);
    let cleared = gateway.send("DELETE", "/emulator/faults", "").await;
    assert_eq!(cleared.json, json!([]));
    assert_eq!(gateway.get("/Nodes").await.status, 200);
    for wrong in [
        json!({"Path": "*", "Action": {"Kind": "Empty", "Status": 99}}),
        json!({"Path": "*", "Action": {"Kind": "Explode"}}),
        json!({"Action": {"Kind": "Close"}}),
        json!({"Path": "*", "Action": {"Kind": "Delay", "Milliseconds": 3_600_001}}),
    ] {
        gateway
            .post("/emulator/faults", wrong)
            .await
            .expect_error(400, "E_INVALIDARG");
    }
}

#[tokio::test]
async fn services_are_scaled() {
    let gateway = Gateway::start().await;
    for (service, count) in [("Shop~Web", 3), ("Shop~Web", 1), ("Meters~North~Reader", 2)] {
        gateway
            .post(
                &format!("/emulator/services/{service}/$/scale"),
                json!({"Count": count}),
            )
            .await
            .expect_empty(200);
        gateway.emulator.advance(SETTLED);
        let partition = gateway.partition(service).await;
        let path = format!("/Partitions/{partition}/$/GetReplicas");
        let ready = gateway.items(&path).await;
        assert_eq!(ready.len(), count, "{service}");
    }
    gateway
        .post("/emulator/services/Nobody/$/scale", json!({"Count": 1}))
        .await
        .expect_error(404, "FABRIC_E_SERVICE_DOES_NOT_EXIST");
}

#[tokio::test]
async fn nodes_are_switched_off_and_on() {
    let gateway = Gateway::start().await;
    gateway
        .post("/emulator/nodes/_Node_2/stop", "")
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    let node = gateway.get("/Nodes/_Node_2").await.json;
    assert_eq!(node["NodeStatus"], "Down");
    assert_ne!(node["NodeDownTimeInSeconds"], "0");
    gateway
        .post("/emulator/nodes/_Node_2/start", "")
        .await
        .expect_empty(200);
    gateway.emulator.advance(SETTLED);
    assert_eq!(gateway.get("/Nodes/_Node_2").await.json["NodeStatus"], "Up");
    gateway
        .post("/emulator/nodes/_Node_9/stop", "")
        .await
        .expect_error(404, "FABRIC_E_NODE_NOT_FOUND");
}

#[tokio::test]
async fn processes_crash() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let node = text(&gateway.replica(&partition).await["NodeName"]);
    let crash = json!({
        "Application": "fabric:/Shop", "Manifest": "WebPkg", "CodePackage": "Code", "ExitCode": 3,
    });
    gateway
        .post(&format!("/emulator/nodes/{node}/crash"), &crash)
        .await
        .expect_empty(200);
    let code = gateway
        .get(&format!(
            "/Nodes/{node}/$/GetApplications/Shop/$/GetCodePackages?ServiceManifestName=WebPkg"
        ))
        .await
        .json;
    let statistics = &code[0]["MainEntryPoint"]["CodePackageEntryPointStatistics"];
    assert_eq!(
        (&statistics["LastExitCode"], &statistics["ExitFailureCount"]),
        (&json!("3"), &json!("1"))
    );
    let health = gateway
        .get(&format!(
            "/Nodes/{node}/$/GetApplications/Shop/$/GetServicePackages/WebPkg/$/GetHealth"
        ))
        .await
        .json;
    assert_eq!(health["AggregatedHealthState"], "Warning");
    gateway.emulator.advance(SETTLED);
    let replicas = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    let ready = replicas
        .iter()
        .filter(|found| found["ReplicaStatus"] == "Ready");
    assert_eq!(ready.count(), 2);
}

#[tokio::test]
async fn applications_are_upgraded() {
    let gateway = Gateway::start().await;
    gateway
        .post(
            "/emulator/applications/Shop/$/upgrade",
            json!({"Version": "2.0.0"}),
        )
        .await
        .expect_empty(200);
    for _ in 0..20 {
        gateway.emulator.advance(SETTLED);
    }
    let application = gateway.get("/Applications/Shop").await.json;
    assert_eq!(application["TypeVersion"], "2.0.0");
    assert_eq!(
        application["Parameters"],
        json!([{"Key": "Host", "Value": "shop.example"}])
    );
}

#[tokio::test]
async fn a_partition_shows_any_status() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Cart").await;
    let path = format!("/emulator/partitions/{partition}/status");
    for (status, shown) in [
        (json!("InQuorumLoss"), "InQuorumLoss"),
        (json!(null), "Ready"),
    ] {
        gateway
            .post(&path, json!({"Status": status}))
            .await
            .expect_empty(200);
        let found = gateway.get(&format!("/Partitions/{partition}")).await.json;
        assert_eq!(found["PartitionStatus"], shown);
    }
    gateway
        .post(&path, json!({"Status": "Lost"}))
        .await
        .expect_error(400, "E_INVALIDARG");
}

#[tokio::test]
async fn addresses_flap() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let id = text(&gateway.replica(&partition).await["InstanceId"]);
    gateway
        .post(
            &format!("/emulator/partitions/{partition}/replicas/{id}/flap"),
            json!({"Every": "5s"}),
        )
        .await
        .expect_empty(200);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        seen.insert(text(&gateway.replica(&partition).await["Address"]));
        gateway.emulator.advance(std::time::Duration::from_secs(5));
    }
    assert!(seen.len() > 1, "{seen:?}");
}

#[tokio::test]
async fn no_fault_hits_the_calls_that_take_it_back() {
    let gateway = Gateway::start().await;
    let faults = gateway.emulator.faults();
    faults.fail_next(100, "*", 500, "E_FAIL").unwrap();
    assert_eq!(gateway.get("/emulator").await.status, 200);
    assert_eq!(gateway.get("/Nodes").await.status, 500);
}

#[tokio::test]
async fn a_step_of_time_is_bounded() {
    let gateway = Gateway::start().await;
    let reply = gateway
        .post("/emulator/time/advance", json!({"By": "745h"}))
        .await;
    reply.expect_error(400, "E_INVALIDARG");
    assert!(reply.json.to_string().contains("31 days"), "{}", reply.json);
    let overview = gateway.get("/emulator").await;
    assert_eq!(overview.json["Seconds"], json!(600));
}

#[tokio::test]
async fn pages_are_cut_and_cut_no_longer() {
    let gateway = Gateway::start().await;
    let path = "/emulator/page-size";
    for end in ["null", r#"{"Items":null}"#] {
        gateway.post(path, r#"{"Items":1}"#).await.expect_empty(200);
        assert_eq!(gateway.items("/Nodes").await.len(), 1);
        gateway.post(path, end).await.expect_empty(200);
        assert!(gateway.items("/Nodes").await.len() > 1, "{end}");
    }
    for wrong in ["{}", r#"{"Items":0}"#, "7"] {
        let reply = gateway.post(path, wrong).await;
        reply.expect_error(400, "E_INVALIDARG");
        assert!(!reply.json.to_string().contains("struct"), "{}", reply.json);
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_no_obstacle() {
    let gateway = Gateway::start().await;
    gateway
        .post("/emulator/page-size", "\u{feff}{\"Items\":1}")
        .await
        .expect_empty(200);
}

#[tokio::test]
async fn pages_of_other_origins_change_nothing() {
    let gateway = Gateway::start().await;
    let own = gateway.emulator.address().to_string();
    for (method, path, host, origin, status) in [
        (
            "POST",
            "/emulator/nodes/_Node_1/start",
            own.as_str(),
            "http://evil.example",
            403,
        ),
        (
            "POST",
            "/emulator/nodes/_Node_1/start",
            own.as_str(),
            "null",
            403,
        ),
        // A name that its owner has pointed to this machine.
        (
            "POST",
            "/emulator/nodes/_Node_1/start",
            "evil.example",
            "http://evil.example",
            403,
        ),
        (
            "DELETE",
            "/emulator/faults",
            own.as_str(),
            "http://evil.example",
            403,
        ),
        (
            "DELETE",
            "/emulator/faults",
            own.as_str(),
            &format!("http://{own}"),
            200,
        ),
        (
            "DELETE",
            "/emulator/faults",
            "localhost:1",
            "http://localhost:1",
            200,
        ),
        ("GET", "/emulator", own.as_str(), "http://evil.example", 200),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let answer = RawClient::exchange(gateway.emulator.address(), &request)
            .await
            .expect("there is an answer");
        assert_eq!(answer.status(), status, "{method} {path} {host} {origin}");
    }
}
