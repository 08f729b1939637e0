//! `api-version`, and its effects.

use serde_json::json;

use super::{Gateway, keys};

#[tokio::test]
async fn a_version_must_be_there_and_known() {
    let gateway = Gateway::start().await;
    for (query, status) in [
        ("", 400),
        ("?api-version=", 400),
        ("?api-version=9.2", 400),
        ("?api-version=10.0", 400),
        ("?api-version=0.9", 400),
        ("?api-version=latest", 400),
        ("?api-version=6.0-beta", 400),
        ("?Api-Version=6.0", 400),
        ("?timeout=60", 400),
        ("?api-version=1.0", 200),
        ("?api-version=6.0-preview", 200),
        ("?api-version=6", 200),
        ("?timeout=never&api-version=9.1", 200),
        ("?api-version=6.0&api-version=99", 200),
    ] {
        let reply = gateway
            .send_as_written("GET", &format!("/Nodes{query}"), "")
            .await;
        assert_eq!(reply.status, status, "{query}: {}", reply.json);
        if status == 400 {
            reply.expect_error(400, "E_INVALIDARG");
        }
    }
}

#[tokio::test]
async fn calls_begin_with_the_version_that_brought_them() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Cart").await;
    let path = format!("/Partitions/{partition}/$/MovePrimaryReplica");
    let before = gateway.post(&format!("{path}?api-version=6.4"), "").await;
    before.expect_error(400, "E_INVALIDARG");
    let after = gateway.post(&format!("{path}?api-version=6.5"), "").await;
    after.expect_empty(200);
}

#[tokio::test]
async fn the_root_needs_no_version() {
    let gateway = Gateway::start().await;
    let reply = gateway.send_as_written("GET", "/", "").await;
    assert_eq!((reply.status, reply.json), (200, json!({})));
}

#[tokio::test]
async fn old_versions_have_bare_arrays() {
    let gateway = Gateway::start().await;
    for path in [
        "/Nodes",
        "/Applications",
        "/ApplicationTypes",
        "/Applications/Shop/$/GetServices",
        "/Services/Shop~Cart/$/GetPartitions",
        "/Nodes/_Node_0/$/GetApplications",
    ] {
        let old = gateway.get(&format!("{path}?api-version=1.0")).await;
        let new = gateway.get(&format!("{path}?api-version=2.0")).await;
        assert!(old.json.is_array(), "{path}: {}", old.json);
        assert_eq!(keys(&new.json), ["ContinuationToken", "Items"], "{path}");
        let count = new.json["Items"].as_array().map(Vec::len);
        assert_eq!(old.json.as_array().map(Vec::len), count, "{path}");
    }
}

#[tokio::test]
async fn ids_have_tildes_from_6_0_on() {
    let gateway = Gateway::start().await;
    for (version, application, service) in [
        ("5.0", "Meters/North", "Shop/Admin/Web%20x"),
        ("6.0", "Meters~North", "Shop~Admin~Web%20x"),
    ] {
        let applications = gateway
            .items(&format!("/Applications?api-version={version}"))
            .await;
        assert!(
            applications.iter().any(|found| found["Id"] == application),
            "{applications:?}"
        );
        let services = gateway
            .items(&format!(
                "/Applications/Shop/$/GetServices?api-version={version}"
            ))
            .await;
        assert!(
            services.iter().any(|found| found["Id"] == service),
            "{services:?}"
        );
    }
}

#[tokio::test]
async fn epochs_are_renamed_in_6_4() {
    let gateway = Gateway::start().await;
    for (version, there, gone) in [
        ("6.3", "CurrentConfigurationEpoch", "PrimaryEpoch"),
        ("6.4", "PrimaryEpoch", "CurrentConfigurationEpoch"),
    ] {
        let partitions = gateway
            .items(&format!(
                "/Services/Shop~Cart/$/GetPartitions?api-version={version}"
            ))
            .await;
        assert!(partitions[0][there]["ConfigurationVersion"].is_string());
        assert!(partitions[0].get(gone).is_none());
    }
}

#[tokio::test]
async fn services_are_limited_from_6_4_on() {
    let gateway = Gateway::start().await;
    for (version, count) in [("6.0", 4), ("6.4", 1)] {
        let path = format!("/Applications/Shop/$/GetServices?MaxResults=1&api-version={version}");
        assert_eq!(gateway.items(&path).await.len(), count, "{version}");
    }
}
