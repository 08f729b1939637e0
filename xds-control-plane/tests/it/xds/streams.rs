//! Streams over real connections.

use std::time::Duration;

use futures_util::stream;
use testkit::time::{eventually, guarded};
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};
use xds_control_plane::server::ServerOptions;
use xds_control_plane::snapshot::ResourceType::{self, Cluster, Endpoint, Route};
use xds_types::pb::envoy::config::core::v3::Node;
use xds_types::pb::envoy::service::cluster::v3::cluster_discovery_service_client::ClusterDiscoveryServiceClient;
use xds_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use xds_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DiscoveryRequest, DiscoveryResponse,
};
use xds_types::pb::google::rpc::Status as Rejection;

use crate::xds::support::Running;
use crate::xds::support::resources::Plan;

const ORIGIN: &str = "127.0.0.1:1";

fn plan(names: &[&str]) -> Plan {
    names.iter().fold(Plan::default(), |plan, name| {
        plan.service(name, &[ORIGIN.parse().unwrap()])
    })
}

/// An aggregated stream of state of the world.
pub(crate) struct Stream {
    requests: mpsc::UnboundedSender<DiscoveryRequest>,
    responses: Streaming<DiscoveryResponse>,
}

impl Stream {
    pub(crate) async fn open(server: &Running) -> Self {
        let (requests, outbound) = mpsc::unbounded_channel();
        let outbound = stream::unfold(outbound, |mut outbound| async move {
            outbound.recv().await.map(|request| (request, outbound))
        });
        let mut client = AggregatedDiscoveryServiceClient::new(server.channel().await);
        let answered = client.stream_aggregated_resources(outbound);
        let responses = guarded("the stream", answered).await.unwrap().into_inner();
        Self {
            requests,
            responses,
        }
    }

    fn ask(&self, resource_type: ResourceType, names: &[&str]) {
        self.say(request(resource_type, names));
    }

    pub(crate) fn say(&self, request: DiscoveryRequest) {
        self.requests.send(request).unwrap();
    }

    async fn next(&mut self) -> Result<Option<DiscoveryResponse>, Status> {
        guarded("the next response", self.responses.message()).await
    }

    pub(crate) async fn response(&mut self) -> DiscoveryResponse {
        self.next().await.unwrap().expect("the stream goes on")
    }
}

pub(crate) fn request(resource_type: ResourceType, names: &[&str]) -> DiscoveryRequest {
    DiscoveryRequest {
        node: Some(Node {
            id: "node-1".to_owned(),
            cluster: "fleet".to_owned(),
            ..Node::default()
        }),
        type_url: resource_type.type_url().to_owned(),
        resource_names: names.iter().map(|&name| name.to_owned()).collect(),
        ..DiscoveryRequest::default()
    }
}

/// The rejection of a response with clusters.
pub(crate) fn rejecting(response: &DiscoveryResponse, message: &str) -> DiscoveryRequest {
    DiscoveryRequest {
        response_nonce: response.nonce.clone(),
        error_detail: Some(Rejection {
            code: 3,
            message: message.to_owned(),
            ..Rejection::default()
        }),
        ..request(Cluster, &[])
    }
}

#[tokio::test]
async fn an_aggregated_stream_has_all_types_and_follows_changes() {
    let server = Running::start(plan(&["a", "b"]).snapshot()).await;
    let mut stream = Stream::open(&server).await;
    stream.ask(Cluster, &[]);
    let clusters = stream.response().await;
    assert_eq!(clusters.type_url, Cluster.type_url());
    assert_eq!(clusters.resources.len(), 2);
    stream.ask(Endpoint, &["a"]);
    let endpoints = stream.response().await;
    assert_eq!(endpoints.resources.len(), 1);
    stream.say(DiscoveryRequest {
        version_info: clusters.version_info.clone(),
        response_nonce: clusters.nonce,
        ..request(Cluster, &[])
    });
    server.publish(plan(&["a", "b", "c"]).snapshot());
    let more = stream.response().await;
    assert_eq!(more.resources.len(), 3);
    assert_ne!(more.version_info, clusters.version_info);
}

#[tokio::test]
async fn streams_wait_for_the_first_snapshot_and_health_says_so() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let server = Running::start(None).await;
    let mut stream = Stream::open(&server).await;
    stream.ask(Cluster, &[]);
    let mut health = HealthClient::new(server.channel().await);
    let service = "envoy.service.discovery.v3.AggregatedDiscoveryService";
    for service in ["", service] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::NotServing);
    }
    eventually("the stream has been heard", async || {
        !server.handle.nodes().is_empty()
    })
    .await;
    server.publish(plan(&["a"]).snapshot());
    assert_eq!(stream.response().await.resources.len(), 1);
    eventually("health is good", || {
        let mut health = health.clone();
        async move {
            let request = HealthCheckRequest {
                service: service.to_owned(),
            };
            let answer = health.check(request).await.unwrap().into_inner();
            answer.status() == ServingStatus::Serving
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_client_has_and_rejects_can_be_seen() {
    let server = Running::start(plan(&["a"]).snapshot()).await;
    let mut stream = Stream::open(&server).await;
    stream.ask(Cluster, &[]);
    let response = stream.response().await;
    stream.say(rejecting(&response, "no\u{1b}[1m good"));
    let rejected = || {
        let nodes = server.handle.nodes();
        let stream = nodes.first()?.streams.first()?;
        let of = stream.types.first()?.clone();
        of.rejected.is_some().then_some((nodes, of))
    };
    eventually("the rejection is known", async || rejected().is_some()).await;
    let (nodes, of) = rejected().unwrap();
    assert_eq!(
        (nodes[0].node.id.as_str(), nodes[0].node.cluster.as_str()),
        ("node-1", "fleet")
    );
    assert!(of.wildcard);
    assert_eq!(of.acknowledged, None);
    let rejection = of.rejected.unwrap();
    assert_eq!(rejection.message, "no\u{fffd}[1m good");
    assert_eq!(rejection.version.to_string(), response.version_info);
    drop(stream);
    eventually("the stream is gone", async || {
        server.handle.open_streams() == 0
    })
    .await;
    assert_eq!(server.handle.nodes().len(), 0);
}

#[tokio::test]
async fn the_incremental_stream_of_a_type_needs_no_type_url() {
    let server = Running::start(plan(&["a", "b"]).snapshot()).await;
    let mut client = ClusterDiscoveryServiceClient::new(server.channel().await);
    let requests = stream::iter([DeltaDiscoveryRequest::default()]);
    let mut responses = client.delta_clusters(requests).await.unwrap().into_inner();
    let response = guarded("the response", responses.message())
        .await
        .unwrap()
        .unwrap();
    let names: Vec<_> = response
        .resources
        .iter()
        .map(|resource| resource.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    // The client has sent all its requests, so the stream ends.
    let end = guarded("the end", responses.message()).await.unwrap();
    assert_eq!(end, None);
}

#[tokio::test]
async fn a_stream_of_one_type_has_no_other() {
    let server = Running::start(plan(&["a"]).snapshot()).await;
    let mut client = ClusterDiscoveryServiceClient::new(server.channel().await);
    let requests = stream::iter([request(Endpoint, &["a"])]);
    let mut responses = client.stream_clusters(requests).await.unwrap().into_inner();
    let rejected = guarded("the rejection", responses.message())
        .await
        .unwrap_err();
    assert_eq!(rejected.code(), Code::InvalidArgument);
    assert!(
        rejected.message().contains(Cluster.type_url()),
        "{rejected}"
    );
}

#[tokio::test]
async fn a_type_that_is_not_served_is_passed_over() {
    let server = Running::start(plan(&["a"]).snapshot()).await;
    let mut stream = Stream::open(&server).await;
    stream.say(DiscoveryRequest {
        type_url: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret".to_owned(),
        ..DiscoveryRequest::default()
    });
    stream.ask(Cluster, &[]);
    assert_eq!(stream.response().await.type_url, Cluster.type_url());
    stream.say(DiscoveryRequest::default());
    let rejected = stream.next().await.unwrap_err();
    assert_eq!(rejected.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_client_may_ask_only_for_so_much() {
    let options = ServerOptions::default()
        .with_names_per_stream(2)
        .with_streams_per_peer(2)
        .with_request_bytes(1000);
    let server = Running::with(plan(&["a"]).snapshot(), options).await;
    let mut names = Stream::open(&server).await;
    names.ask(Endpoint, &["a", "b", "c"]);
    let rejected = names.next().await.unwrap_err();
    assert_eq!(rejected.code(), Code::ResourceExhausted);

    let mut bytes = Stream::open(&server).await;
    bytes.ask(Endpoint, &["x".repeat(2000).as_str()]);
    let rejected = bytes.next().await.unwrap_err();
    assert_eq!(rejected.code(), Code::OutOfRange);
    eventually("both are gone", async || server.handle.open_streams() == 0).await;

    let open = (Stream::open(&server).await, Stream::open(&server).await);
    let mut client = AggregatedDiscoveryServiceClient::new(server.channel().await);
    let rejected = client
        .stream_aggregated_resources(stream::pending())
        .await
        .unwrap_err();
    assert_eq!(rejected.code(), Code::ResourceExhausted);
    drop(open);
}

#[tokio::test]
async fn the_streams_of_one_address_together_may_ask_only_for_so_much() {
    let options = ServerOptions::default().with_names_per_peer(5);
    let server = Running::with(plan(&["a"]).snapshot(), options).await;
    let mut first = Stream::open(&server).await;
    first.ask(Endpoint, &["a", "b", "c"]);
    first.response().await;
    let mut second = Stream::open(&server).await;
    second.ask(Endpoint, &["a"]);
    second.response().await;
    second.ask(Route, &["a", "b"]);
    let rejected = second.next().await.unwrap_err();
    assert_eq!(rejected.code(), Code::ResourceExhausted);
    assert!(
        rejected.message().contains("from this address"),
        "{rejected}"
    );
    // What has ended counts no more.
    drop(first);
    eventually("both are gone", async || server.handle.open_streams() == 0).await;
    let mut third = Stream::open(&server).await;
    third.ask(Endpoint, &["a", "b", "c", "d", "e"]);
    third.response().await;
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let server = Running::start(plan(&["a"]).snapshot()).await;
    let mut stream = Stream::open(&server).await;
    stream.ask(Cluster, &[]);
    stream.response().await;
    server.stop().await;
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_server_stops_although_a_client_holds_on() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let options = ServerOptions::default().with_drain(Duration::from_millis(100));
    let server = Running::with(plan(&["a"]).snapshot(), options).await;
    let mut health = HealthClient::new(server.channel().await);
    // Only the client ends such a stream.
    let watching = health.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watching = watching.into_inner();
    let mut said = Vec::new();
    while said.last() != Some(&ServingStatus::Serving) {
        let next = guarded("its health", watching.message()).await.unwrap();
        said.push(next.unwrap().status());
    }
    let stopping = tokio::spawn(server.stop());
    let next = guarded("its health", watching.message()).await.unwrap();
    assert_eq!(next.unwrap().status(), ServingStatus::NotServing);
    stopping.await.unwrap();
}

/// A client that does not read delays only itself, and gets the newest state when it does.
#[tokio::test]
async fn a_slow_client_is_told_the_newest_state() {
    let server = Running::start(plan(&["a"]).snapshot()).await;
    let mut slow = Stream::open(&server).await;
    let mut quick = Stream::open(&server).await;
    for stream in [&slow, &quick] {
        stream.ask(Cluster, &[]);
    }
    let first = slow.response().await;
    let mut last = quick.response().await;
    let numbered: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
    for count in 1..=numbered.len() {
        let names: Vec<&str> = numbered[..count].iter().map(String::as_str).collect();
        server.publish(plan(&names).snapshot());
        quick.say(DiscoveryRequest {
            response_nonce: last.nonce,
            ..request(Cluster, &[])
        });
        last = quick.response().await;
    }
    slow.say(DiscoveryRequest {
        response_nonce: first.nonce,
        ..request(Cluster, &[])
    });
    // The first cluster is on its way out, and stays for those who may still have routes to it.
    let newest = slow.response().await;
    assert_eq!(newest.version_info, last.version_info);
    assert_eq!(newest.resources.len(), 51);
}

/// Each request names the whole subscription in state of the world, changed or not.
#[tokio::test]
async fn names_that_were_said_before_ask_for_nothing_and_others_do() {
    let services = |a: u16, b: u16| {
        let at = |port| [([127, 0, 0, 1], port).into()];
        let plan = Plan::default().service("a", &at(a)).service("b", &at(b));
        plan.snapshot()
    };
    let server = Running::start(services(1, 1)).await;
    let mut stream = Stream::open(&server).await;
    let mut accepted = String::new();
    // What changes, what the next request names, and how many resources come then.
    for (change, names, count) in [
        (None, &["a"][..], 1),
        (Some((2, 1)), &["a"], 1),
        (Some((3, 2)), &["a"], 1),
        (None, &["a", "b"], 1),
        (Some((3, 3)), &["a", "b"], 1),
        (Some((4, 4)), &["a"], 1),
        (None, &["b"], 1),
        (None, &["b", "a"], 1),
        (Some((5, 5)), &["b", "a"], 2),
    ] {
        stream.say(DiscoveryRequest {
            response_nonce: std::mem::take(&mut accepted),
            ..request(Endpoint, names)
        });
        // Until the last response is acknowledged nothing is pushed, so the request is always taken in first.
        if let Some((a, b)) = change {
            server.publish(services(a, b));
        }
        let response = stream.response().await;
        assert_eq!(response.resources.len(), count, "{change:?} {names:?}");
        accepted = response.nonce;
    }
}
