//! Tests of single requests: unary calls, and polls with JSON.

use http::StatusCode;
use prost::Message;
use serde_json::{Value, json};
use testkit::client::{Answer, Connection};
use tonic::Code;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use xds_types::pb::envoy::service::endpoint::v3::endpoint_discovery_service_client::EndpointDiscoveryServiceClient;
use xds_types::pb::envoy::service::listener::v3::listener_discovery_service_client::ListenerDiscoveryServiceClient;

use crate::xds::support::Running;
use crate::xds::support::resources::Plan;

fn plan() -> Plan {
    Plan::default()
        .service("a", &["127.0.0.1:1".parse().unwrap()])
        .service("b", &["[::1]:2".parse().unwrap()])
}

fn asks_for(names: &[&str]) -> DiscoveryRequest {
    DiscoveryRequest {
        resource_names: names.iter().map(|&name| name.to_owned()).collect(),
        ..DiscoveryRequest::default()
    }
}

/// gRPC clients get a gRPC status, all others an HTTP status.
#[tokio::test]
async fn unknown_paths_are_not_found() {
    let server = Running::start(plan().snapshot()).await;
    for (method, path, kind, status, code) in [
        (
            "POST",
            "/v3/discovery:secrets",
            "application/json",
            404,
            None,
        ),
        ("POST", "/a.b.C/Method", "", 404, None),
        ("GET", "/", "", 404, None),
        ("POST", "/a.b.C/Method", "application/grpc", 200, Some("12")),
        (
            "POST",
            "/a.b.C/Method",
            "application/grpc+proto",
            200,
            Some("12"),
        ),
    ] {
        let mut connection = Connection::http1(server.address).await.unwrap();
        let request = connection
            .request(method, path)
            .header("content-type", kind);
        let request = request.body(testkit::body::empty()).unwrap();
        let answer = connection.send(request).await.unwrap();
        let said = answer
            .headers
            .get("grpc-status")
            .map(|it| it.to_str().unwrap());
        assert_eq!(
            (answer.status.as_u16(), said),
            (status, code),
            "{method} {path} {kind}"
        );
    }
}

#[tokio::test]
async fn fetch_answers_what_is_named_and_without_names_everything() {
    let server = Running::start(plan().snapshot()).await;
    let mut client = EndpointDiscoveryServiceClient::new(server.channel().await);
    for (names, expected) in [
        (&["b"] as &[&str], &["b"] as &[&str]),
        (&[], &["a", "b"]),
        (&["*"], &["a", "b"]),
        (&["none"], &[]),
        (&["b", "b", "a"], &["a", "b"]),
    ] {
        let answer = client
            .fetch_endpoints(asks_for(names))
            .await
            .unwrap()
            .into_inner();
        let found: Vec<_> = answer
            .resources
            .iter()
            .map(|any| {
                ClusterLoadAssignment::decode(any.value.as_slice())
                    .unwrap()
                    .cluster_name
            })
            .collect();
        assert_eq!(found, expected, "{names:?}");
    }
}

/// X02.
#[tokio::test]
async fn fetch_says_by_the_version_that_nothing_changed() {
    let server = Running::start(plan().snapshot()).await;
    let replica = Running::start(plan().snapshot()).await;
    let fetch = async |server: &Running, version: &str| {
        let mut client = EndpointDiscoveryServiceClient::new(server.channel().await);
        let request = DiscoveryRequest {
            version_info: version.to_owned(),
            ..asks_for(&["a"])
        };
        client.fetch_endpoints(request).await.unwrap().into_inner()
    };
    let first = fetch(&server, "").await;
    assert_eq!(fetch(&replica, "").await.version_info, first.version_info);
    let again = fetch(&server, &first.version_info).await;
    assert_eq!(again.version_info, first.version_info);
    assert_eq!(again.resources, []);
    // Changes of resources that were not requested do not count.
    let moved = plan().service("c", &[]);
    server.publish(moved.snapshot());
    let other = fetch(&server, &first.version_info).await;
    assert_eq!(other.version_info, first.version_info);
}

#[tokio::test]
async fn fetch_of_nothing_is_an_answer_and_before_the_first_snapshot_none() {
    let server = Running::start(None).await;
    let mut client = ListenerDiscoveryServiceClient::new(server.channel().await);
    let early = client.fetch_listeners(asks_for(&[])).await.unwrap_err();
    assert_eq!(early.code(), Code::Unavailable);
    server.publish(plan().snapshot());
    testkit::time::eventually("it is ready", async || server.handle.is_ready()).await;
    let answer = client
        .fetch_listeners(asks_for(&[]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.resources, []);
    let other = DiscoveryRequest {
        type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned(),
        ..DiscoveryRequest::default()
    };
    let rejected = client.fetch_listeners(other).await.unwrap_err();
    assert_eq!(rejected.code(), Code::InvalidArgument);
}

async fn poll(server: &Running, path: &str, body: &str) -> Answer {
    let mut connection = Connection::http1(server.address).await.unwrap();
    let request = connection.request("POST", path);
    let request = request.body(testkit::body::full(body.to_owned())).unwrap();
    connection.send(request).await.unwrap()
}

#[tokio::test]
async fn polls_read_both_spellings_and_answer_in_json() {
    let server = Running::start(plan().snapshot()).await;
    let endpoint = |name: &str, address: &str, port: u16| {
        json!({
            "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            "clusterName": name,
            "endpoints": [{ "lbEndpoints": [{ "endpoint": {
                "address": { "socketAddress": { "address": address, "portValue": port } },
            } }] }],
        })
    };
    for body in [
        json!({ "resource_names": ["b"], "type_url": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment" }),
        json!({ "resourceNames": ["b"], "node": { "id": "x", "metadata": { "a": [1] } }, "of_tomorrow": {} }),
    ] {
        let answer = poll(&server, "/v3/discovery:endpoints", &body.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let json: Value = answer.json();
        assert_eq!(json["resources"], json!([endpoint("b", "::1", 2)]));
        assert_eq!(
            json["typeUrl"],
            "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
        );
        let version = json["versionInfo"].as_str().unwrap();
        let again = json!({ "resource_names": ["b"], "version_info": version });
        let again = poll(&server, "/v3/discovery:endpoints", &again.to_string()).await;
        assert_eq!(
            (again.status, again.text().as_str()),
            (StatusCode::NOT_MODIFIED, "")
        );
    }
    for path in ["clusters", "listeners", "routes"] {
        let answer = poll(&server, &format!("/v3/discovery:{path}"), "{}").await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
    }
    let clusters = poll(&server, "/v3/discovery:clusters", "{}").await;
    let clusters: Value = clusters.json();
    let source = &clusters["resources"][0]["edsClusterConfig"]["edsConfig"]["apiConfigSource"];
    assert_eq!(source["apiType"], "REST", "{clusters}");
}

#[tokio::test]
async fn polls_that_cannot_be_read_are_told_why() {
    let server = Running::start(plan().snapshot()).await;
    for body in ["", "{", "[]", "{\"resource_names\": 1}", "{} {}"] {
        let answer = poll(&server, "/v3/discovery:clusters", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        let json: Value = answer.json();
        assert!(
            json["error"].as_str().unwrap().contains("DiscoveryRequest"),
            "{json}"
        );
    }
    let deep = format!(
        "{{\"node\":{{\"metadata\":{{\"a\":{}{}}}}}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let answer = poll(&server, "/v3/discovery:clusters", &deep).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let early = Running::start(None).await;
    let answer = poll(&early, "/v3/discovery:clusters", "{}").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
}
