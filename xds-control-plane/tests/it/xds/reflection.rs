//! Tests that clients without `.proto` files can make calls.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage};
use serde_json::Value;
use testkit::peers;
use xds_control_plane::server::ENVOY_DESCRIPTORS;
use xds_control_plane::snapshot::{ResourceType, Subscription};

use crate::xds::support::Running;
use crate::xds::support::resources::Plan;

fn plan() -> Plan {
    Plan::default()
        .service("a", &["127.0.0.1:1".parse().unwrap()])
        .listen("127.0.0.1:2".parse().unwrap())
}

/// No field that xds-types writes is unknown to the descriptors, to any depth, and so none has another number or form.
#[test]
fn the_descriptors_know_what_xds_types_writes() {
    let pool = DescriptorPool::decode(ENVOY_DESCRIPTORS).unwrap();
    let snapshot = plan().snapshot();
    let mut seen = 0;
    for resource_type in ResourceType::MAKE_BEFORE_BREAK {
        let (_, name) = resource_type.type_url().split_once('/').unwrap();
        let descriptor = pool.get_message_by_name(name).unwrap();
        for resource in snapshot.resources(resource_type).iter() {
            for subscription in Subscription::ALL {
                let body = resource.body(subscription).clone();
                let message = DynamicMessage::decode(descriptor.clone(), body.clone()).unwrap();
                seen += assert_known(&pool, &message);
                // All that is in it is written as JSON and read back: nothing in an Any is opaque.
                let json = serde_json::to_value(&message).unwrap();
                let read = DynamicMessage::deserialize(descriptor.clone(), json).unwrap();
                assert_eq!(read, message);
                assert_eq!(read.encode_to_vec().len(), body.len());
            }
        }
    }
    assert!(seen > 50, "only {seen} messages");
}

/// Returns the number of messages, after checking that all their fields are known.
fn assert_known(pool: &DescriptorPool, message: &DynamicMessage) -> usize {
    use prost_reflect::Value as Field;

    fn walk(pool: &DescriptorPool, field: &Field) -> usize {
        match field {
            Field::Message(message) => assert_known(pool, message),
            Field::List(list) => list.iter().map(|field| walk(pool, field)).sum(),
            Field::Map(map) => map.values().map(|field| walk(pool, field)).sum(),
            _ => 0,
        }
    }

    let descriptor = message.descriptor();
    let unknown: Vec<_> = message.unknown_fields().collect();
    assert!(
        unknown.is_empty(),
        "{}: {unknown:?}",
        descriptor.full_name()
    );
    let inside: usize = message.fields().map(|(_, field)| walk(pool, field)).sum();
    let wrapped = if descriptor.full_name() == "google.protobuf.Any" {
        let text = |name: &str| message.get_field_by_name(name).unwrap().into_owned();
        let type_url = text("type_url").as_str().unwrap().to_owned();
        let (_, name) = type_url.split_once('/').unwrap();
        let descriptor = pool.get_message_by_name(name);
        let descriptor = descriptor.unwrap_or_else(|| panic!("{name} is not in the descriptors"));
        let value = text("value").as_bytes().unwrap().clone();
        assert_known(pool, &DynamicMessage::decode(descriptor, value).unwrap())
    } else {
        0
    };
    1 + inside + wrapped
}

async fn reflect(server: &Running, symbol: &str) -> bool {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let mut client = ServerReflectionClient::new(server.channel().await);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::FileContainingSymbol(symbol.to_owned())),
    };
    let requests = futures_util::stream::iter([request]);
    let answers = client.server_reflection_info(requests).await.unwrap();
    let answer = answers.into_inner().message().await;
    let Ok(Some(answer)) = answer else {
        return false;
    };
    matches!(
        answer.message_response,
        Some(MessageResponse::FileDescriptorResponse(_))
    )
}

/// Services do not import the types of what they carry, so these are easily forgotten.
#[tokio::test]
async fn all_services_and_what_they_carry_are_reflected() {
    let server = Running::start(plan().snapshot()).await;
    for symbol in [
        "envoy.service.discovery.v3.AggregatedDiscoveryService",
        "envoy.service.cluster.v3.ClusterDiscoveryService",
        "envoy.service.endpoint.v3.EndpointDiscoveryService",
        "envoy.service.listener.v3.ListenerDiscoveryService",
        "envoy.service.route.v3.RouteDiscoveryService",
        "envoy.config.cluster.v3.Cluster",
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "envoy.config.listener.v3.Listener",
        "envoy.config.route.v3.RouteConfiguration",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "envoy.extensions.filters.http.router.v3.Router",
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "grpc.health.v1.Health",
    ] {
        assert!(reflect(&server, symbol).await, "{symbol}");
    }
    assert!(!reflect(&server, "envoy.of.Tomorrow").await);
}

/// The operators' way, without `.proto` files at hand.
#[tokio::test]
async fn buf_lists_the_services_and_fetches_endpoints() {
    let Some(buf) = peers::find("buf") else {
        return;
    };
    let server = Running::start(plan().snapshot()).await;
    let url = format!("http://{}", server.address);
    let curl = || {
        let mut command = buf.command();
        command.args(["curl", "--http2-prior-knowledge", "--protocol", "grpc"]);
        command
    };
    let mut list = curl();
    list.args(["--list-services", &url]);
    let listed = peers::output(list).await.expect_success().stdout;
    for service in [
        "AggregatedDiscoveryService",
        "RouteDiscoveryService",
        "grpc.health.v1.Health",
    ] {
        assert!(listed.contains(service), "{listed}");
    }
    let mut fetch = curl();
    let request =
        r#"{"node": {"cluster": "vertis-cluster", "id": "wtf"}, "resource_names": ["a"]}"#;
    let method = format!("{url}/envoy.service.endpoint.v3.EndpointDiscoveryService/FetchEndpoints");
    fetch.args(["--data", request, &method]);
    let fetched = peers::output(fetch).await.expect_success().stdout;
    let json: Value = serde_json::from_str(&fetched).unwrap();
    assert_eq!(json["resources"][0]["clusterName"], "a", "{json}");
    let mut listeners = curl();
    let method = format!("{url}/envoy.service.listener.v3.ListenerDiscoveryService/FetchListeners");
    listeners.args(["--data", "{}", &method]);
    let fetched = peers::output(listeners).await.expect_success().stdout;
    let json: Value = serde_json::from_str(&fetched).unwrap();
    let manager = &json["resources"][0]["filterChains"][0]["filters"][0]["typedConfig"];
    assert_eq!(manager["rds"]["routeConfigName"], "main", "{json}");
}
