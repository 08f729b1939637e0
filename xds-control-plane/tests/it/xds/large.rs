//! Responses with thousands of resources, whose bytes streams share.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use testkit::time::guarded;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};
use xds_control_plane::server::ServerOptions;
use xds_control_plane::snapshot::{
    Bodies, Resource, ResourceSet, ResourceType, Snapshot, Subscription,
};
use xds_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use xds_types::pb::envoy::service::discovery::v3::{
    self as discovery, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
    DiscoveryResponse,
};
use xds_types::pb::envoy::service::endpoint::v3::endpoint_discovery_service_client::EndpointDiscoveryServiceClient;
use xds_types::pb::google::protobuf::Any;

use crate::xds::support::Running;

const RESOURCES: usize = 5_000;

/// Returns thousands of resources of each type with arbitrary content.
fn snapshot() -> Snapshot {
    (ResourceType::MAKE_BEFORE_BREAK.into_iter()).fold(Snapshot::default(), |snapshot, of| {
        let resources = (0..RESOURCES).map(|n| {
            let body = format!("{of}-{n}-{}", "x".repeat(n % 300));
            Arc::new(Resource::new(
                format!("r-{n}"),
                Bodies::Same(body.into_bytes().into()),
            ))
        });
        snapshot.with(of, Arc::new(resources.collect()))
    })
}

fn any(of: ResourceType, resource: &Resource) -> Any {
    Any {
        type_url: of.type_url().to_owned(),
        value: resource.body(Subscription::Aggregated).to_vec(),
    }
}

fn full(of: ResourceType, set: &ResourceSet) -> Vec<Any> {
    set.iter().map(|resource| any(of, resource)).collect()
}

fn delta(of: ResourceType, set: &ResourceSet) -> Vec<discovery::Resource> {
    let resources = set.iter().map(|resource| discovery::Resource {
        name: resource.name().to_string(),
        version: resource.version().to_string(),
        resource: Some(any(of, resource)),
        ..discovery::Resource::default()
    });
    resources.collect()
}

fn names(set: &ResourceSet) -> Vec<String> {
    let names = set.iter().map(|resource| resource.name().to_string());
    names.collect()
}

async fn full_stream(
    channel: Channel,
    of: ResourceType,
    set: &ResourceSet,
) -> Streaming<DiscoveryResponse> {
    let request = DiscoveryRequest {
        type_url: of.type_url().to_owned(),
        resource_names: names(set),
        ..DiscoveryRequest::default()
    };
    let requests = stream::iter([request]).chain(stream::pending());
    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let answered = client.stream_aggregated_resources(requests).await;
    answered.unwrap().into_inner()
}

async fn delta_stream(
    channel: Channel,
    of: ResourceType,
    set: &ResourceSet,
) -> Streaming<DeltaDiscoveryResponse> {
    let request = DeltaDiscoveryRequest {
        type_url: of.type_url().to_owned(),
        resource_names_subscribe: names(set),
        ..DeltaDiscoveryRequest::default()
    };
    let requests = stream::iter([request]).chain(stream::pending());
    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let answered = client.delta_aggregated_resources(requests).await;
    answered.unwrap().into_inner()
}

#[tokio::test]
async fn all_types_come_whole_over_every_way() {
    let published = snapshot();
    let server = Running::start(published.clone()).await;
    let channel = server.channel().await;
    for of in ResourceType::MAKE_BEFORE_BREAK {
        let set = published.resources(of);
        // The second of each is sent the bytes that were made for the first.
        for _ in 0..2 {
            let mut responses = full_stream(channel.clone(), of, set).await;
            let response = guarded("state of the world", responses.message()).await;
            let response = response.unwrap().unwrap();
            assert!(response.resources == full(of, set), "{of}");
            let mut responses = delta_stream(channel.clone(), of, set).await;
            let response = guarded("the difference", responses.message()).await;
            let response = response.unwrap().unwrap();
            assert!(response.resources == delta(of, set), "{of}");
        }
    }
    let set = published.resources(ResourceType::Endpoint);
    let mut client = EndpointDiscoveryServiceClient::new(channel);
    let fetched = client.fetch_endpoints(DiscoveryRequest::default()).await;
    let fetched = fetched.unwrap().into_inner();
    assert!(fetched.resources == full(ResourceType::Endpoint, set));
}

/// All streams of a connection share a flow control window, and each has its own: shared bytes are split at
/// the limit of each.
#[tokio::test]
async fn clients_that_take_little_at_a_time_get_everything() {
    let published = snapshot();
    let server = Running::start(published.clone()).await;
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let endpoint = endpoint
        .initial_stream_window_size(10_000)
        .initial_connection_window_size(66_000);
    let channel = endpoint.connect().await.unwrap();
    let of = ResourceType::Endpoint;
    let set = published.resources(of);
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(delta_stream(channel.clone(), of, set).await);
    }
    let expected = delta(of, set);
    let read = open.iter_mut().map(|responses| responses.message());
    let all = futures_util::future::join_all(read);
    for response in guarded("all of them", all).await {
        assert!(response.unwrap().unwrap().resources == expected);
    }
}

/// Removed resources are reported by name, even thousands of them, and with state of the world by leaving
/// them out.
#[tokio::test]
async fn thousands_that_are_removed_are_told() {
    let published = snapshot();
    // No client acknowledges here.
    let options = ServerOptions::default().with_patience(Duration::ZERO);
    let server = Running::with(published.clone(), options).await;
    let channel = server.channel().await;
    let of = ResourceType::Listener;
    let set = published.resources(of);
    let mut full = full_stream(channel.clone(), of, set).await;
    let mut delta = delta_stream(channel, of, set).await;
    guarded("state of the world", full.message()).await.unwrap();
    guarded("the difference", delta.message()).await.unwrap();
    server.publish(published.clone().with(of, Arc::default()));
    let response = guarded("state of the world", full.message()).await;
    assert_eq!(response.unwrap().unwrap().resources, []);
    let response = guarded("the difference", delta.message()).await;
    let response = response.unwrap().unwrap();
    assert_eq!(response.resources, []);
    assert_eq!(response.removed_resources, names(set));
}
