//! 204 for one missing entity, 404 for lists below a missing parent, and invalid paths.

use super::{Gateway, text};

const NOBODY: &str = "00000000-0000-8000-8000-000000000000";

#[tokio::test]
async fn one_entity_that_is_not_there_is_204() {
    let gateway = Gateway::start().await;
    let web = gateway.partition("Shop~Web").await;
    for path in [
        "/Nodes/_Node_9".to_owned(),
        "/Applications/Nothing".to_owned(),
        "/Applications/Shop/$/GetServices/Shop~Nothing".to_owned(),
        // The service exists, but elsewhere.
        "/Applications/Shop/$/GetServices/Meters~North~Reader".to_owned(),
        format!("/Partitions/{NOBODY}"),
        format!("/Partitions/{web}/$/GetReplicas/1"),
        "/ApplicationTypes/ShopType/$/GetServiceTypes/NoType?ApplicationTypeVersion=1.0.0"
            .to_owned(),
        "/Nodes/_Node_0/$/GetApplications/Nothing".to_owned(),
    ] {
        let reply = gateway.get(&path).await;
        assert_eq!(reply.status, 204, "{path}: {}", reply.json);
        assert!(reply.answer.body.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn lists_below_what_is_not_there_are_404() {
    let gateway = Gateway::start().await;
    for (path, code) in [
        (
            "/Applications/Nothing/$/GetServices".to_owned(),
            "FABRIC_E_APPLICATION_NOT_FOUND",
        ),
        (
            "/Services/Shop~Nothing/$/GetPartitions".to_owned(),
            "FABRIC_E_SERVICE_DOES_NOT_EXIST",
        ),
        (
            "/Services/Shop~Nothing/$/GetDescription".to_owned(),
            "FABRIC_E_SERVICE_DOES_NOT_EXIST",
        ),
        (
            "/Services/Shop~Nothing/$/GetApplicationName".to_owned(),
            "FABRIC_E_SERVICE_DOES_NOT_EXIST",
        ),
        (
            "/Services/Shop~Nothing/$/ResolvePartition".to_owned(),
            "FABRIC_E_SERVICE_DOES_NOT_EXIST",
        ),
        (
            format!("/Partitions/{NOBODY}/$/GetReplicas"),
            "FABRIC_E_PARTITION_NOT_FOUND",
        ),
        (
            format!("/Partitions/{NOBODY}/$/GetServiceName"),
            "FABRIC_E_PARTITION_NOT_FOUND",
        ),
        (
            "/ApplicationTypes/NoType/$/GetServiceTypes?ApplicationTypeVersion=1".to_owned(),
            "FABRIC_E_APPLICATION_TYPE_NOT_FOUND",
        ),
        (
            "/ApplicationTypes/ShopType/$/GetServiceManifest?ApplicationTypeVersion=1.0.0&ServiceManifestName=No"
                .to_owned(),
            "FABRIC_E_SERVICE_MANIFEST_NOT_FOUND",
        ),
        (
            "/Nodes/_Node_9/$/GetApplications".to_owned(),
            "FABRIC_E_NODE_NOT_FOUND",
        ),
        (
            "/Names/Nothing/$/GetProperties".to_owned(),
            "FABRIC_E_NAME_DOES_NOT_EXIST",
        ),
        (
            "/Names/Shop~Web/$/GetProperty?PropertyName=No".to_owned(),
            "FABRIC_E_PROPERTY_DOES_NOT_EXIST",
        ),
        (
            "/Services/Shop~Nothing/$/GetHealth".to_owned(),
            "FABRIC_E_HEALTH_ENTITY_NOT_FOUND",
        ),
    ] {
        let reply = gateway.get(&path).await;
        assert_eq!((reply.status, reply.code()), (404, code), "{path}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_there_is_404_without_a_body() {
    let gateway = Gateway::start().await;
    gateway.get("/Names/Shop~Web").await.expect_empty(200);
    gateway.get("/Names/Nothing").await.expect_empty(404);
}

#[tokio::test]
async fn required_arguments_are_required() {
    let gateway = Gateway::start().await;
    for path in [
        "/ApplicationTypes/ShopType/$/GetServiceTypes",
        "/ApplicationTypes/ShopType/$/GetServiceManifest?ApplicationTypeVersion=1.0.0",
        "/ApplicationTypes/ShopType/$/GetServiceManifest?ServiceManifestName=WebPkg",
        "/ApplicationTypes/ShopType/$/GetApplicationManifest",
        "/Names/Shop~Web/$/GetProperty",
    ] {
        let reply = gateway.get(path).await;
        assert_eq!(
            (reply.status, reply.code()),
            (400, "E_INVALIDARG"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_is_no_call_is_no_call() {
    let gateway = Gateway::start().await;
    for (method, path, status) in [
        ("GET", "/Explorer", 404),
        ("GET", "/nodes", 404),
        ("GET", "/Nodes/a/b", 400),
        ("GET", "/Nodes/_Node_0/$/Deactivate", 400),
        ("PUT", "/Nodes", 400),
        ("PATCH", "/Nodes", 400),
        ("GET", "/Partitions/not-a-guid", 400),
        ("GET", "/Partitions/not-a-guid/$/GetReplicas", 400),
        ("GET", "/Nodes/%ff", 400),
    ] {
        let reply = gateway.send(method, path, "").await;
        reply.expect_error(status, "E_INVALIDARG");
    }
}

/// The vendor's clients fail with a trace if an error has no body.
#[tokio::test]
async fn parts_of_a_cluster_that_are_not_there_are_named() {
    let gateway = Gateway::start().await;
    for (method, path, what) in [
        ("GET", "/Tools/Chaos", "Chaos"),
        ("POST", "/Tools/Chaos/$/Start", "Chaos"),
        ("GET", "/Faults/", "fault analysis"),
        ("GET", "/BackupRestore/BackupPolicies", "backup"),
        ("GET", "/ComposeDeployments", "compose"),
        ("GET", "/EventsStore/Cluster/Events", "event store"),
        ("GET", "/Resources/Applications", "mesh"),
        ("GET", "/ImageStore/$/Info", "image store"),
        ("PUT", "/ImageStore/a/b/$/UploadChunk", "image store"),
    ] {
        let reply = gateway.send(method, path, "").await;
        reply.expect_error(501, "E_NOTIMPL");
        let message = text(&reply.json["Error"]["Message"]);
        assert!(message.contains(what), "{method} {path}: {message}");
    }
}

#[tokio::test]
async fn answers_say_what_they_are() {
    let gateway = Gateway::start().await;
    let good = gateway.get("/Nodes").await;
    let bad = gateway.get("/Nodes/a/b").await;
    for reply in [&good, &bad] {
        assert_eq!(
            reply.answer.header("content-type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(
            reply.answer.header("x-content-type-options"),
            Some("nosniff")
        );
    }
    let empty = gateway.get("/Nodes/nobody").await;
    assert_eq!(empty.answer.header("content-type"), None);
}
