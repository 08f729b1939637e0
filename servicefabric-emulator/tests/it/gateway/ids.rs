//! Names as ids: encoded or not, with tildes or slashes, with a trailing slash.

use super::{Gateway, text};

#[tokio::test]
async fn a_service_is_found_under_all_its_ids() {
    let gateway = Gateway::start().await;
    for id in [
        "Shop~Admin~Web%20x",
        "Shop/Admin/Web%20x",
        "Shop%2FAdmin%2FWeb%20x",
        "Shop%7EAdmin%7EWeb%20x",
        "Shop~Admin~Web%20x/",
    ] {
        let path = format!("/Applications/Shop/$/GetServices/{id}");
        let reply = gateway.get(&path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.json);
        assert_eq!(reply.json["Name"], "fabric:/Shop/Admin/Web x");
        assert_eq!(reply.json["Id"], "Shop~Admin~Web%20x");
    }
}

#[tokio::test]
async fn an_application_is_found_under_all_its_ids() {
    let gateway = Gateway::start().await;
    for id in ["Meters~North", "Meters/North", "Meters%2fNorth"] {
        let path = format!("/Applications/{id}/$/GetServices");
        let services = gateway.items(&path).await;
        assert_eq!(services[0]["Name"], "fabric:/Meters/North/Reader", "{path}");
    }
}

#[tokio::test]
async fn ids_of_answers_can_be_asked_for_as_they_are() {
    let gateway = Gateway::start().await;
    for application in gateway.items("/Applications").await {
        let path = format!("/Applications/{}/$/GetServices", text(&application["Id"]));
        for service in gateway.items(&path).await {
            let id = text(&service["Id"]);
            let again = gateway.get(&format!("{path}/{id}")).await;
            assert_eq!(again.json, service);
            let partitions = gateway
                .items(&format!("/Services/{id}/$/GetPartitions"))
                .await;
            assert!(!partitions.is_empty());
        }
    }
}

#[tokio::test]
async fn ids_of_partitions_may_be_in_upper_case() {
    let gateway = Gateway::start().await;
    let id = gateway.partition("Shop~Web").await;
    let reply = gateway
        .get(&format!("/Partitions/{}", id.to_uppercase()))
        .await;
    assert_eq!(reply.json["PartitionInformation"]["Id"], id.as_str());
}

#[tokio::test]
async fn a_slash_behind_does_not_count() {
    let gateway = Gateway::start().await;
    for path in ["/Nodes", "/Applications/Shop", "/$/GetClusterVersion"] {
        let plain = gateway.get(path).await;
        let slash = gateway.get(&format!("{path}/")).await;
        assert_eq!((slash.status, slash.json), (200, plain.json), "{path}");
    }
}
