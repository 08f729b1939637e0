//! A control plane whose responses a test writes by hand.

use std::pin::Pin;
use std::time::Duration;

use xds_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{HttpConnectionManager, Rds};
use xds_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use xds_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource,
};
use xds_types::pb::google::protobuf::Any;
use futures_util::{Stream, stream};
use prost::Message;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::connect::Dial;
use crate::{XdsDiscoverer, XdsOptions};
use xds_types::ResourceType;

/// One stream of a variant.
pub(super) struct Conversation<Q, A> {
    requests: Streaming<Q>,
    answers: mpsc::Sender<Result<A, Status>>,
}

pub(super) type Full = Conversation<DiscoveryRequest, DiscoveryResponse>;
pub(super) type Delta = Conversation<DeltaDiscoveryRequest, DeltaDiscoveryResponse>;

impl<Q, A> Conversation<Q, A> {
    /// The next request.
    pub(super) async fn request(&mut self) -> Q {
        let next = tokio::time::timeout(super::PATIENCE, self.requests.message());
        next.await
            .expect("a request is expected")
            .unwrap()
            .expect("the stream has ended")
    }

    /// Returns true if no further request comes now.
    pub(super) async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(2), self.requests.message())
            .await
            .is_err()
    }

    pub(super) async fn answer(&self, answer: A) {
        self.answers.send(Ok(answer)).await.unwrap();
    }

    /// Ends the stream with an error.
    pub(super) async fn end(self, status: Status) {
        self.answers.send(Err(status)).await.unwrap();
    }
}

/// The server's side.
pub(super) struct Script {
    pub(super) full: mpsc::Receiver<Full>,
    pub(super) delta: mpsc::Receiver<Delta>,
}

impl Script {
    pub(super) async fn delta(&mut self) -> Delta {
        self.delta.recv().await.unwrap()
    }

    pub(super) async fn full(&mut self) -> Full {
        self.full.recv().await.unwrap()
    }
}

pub(super) struct Service {
    full: mpsc::Sender<Full>,
    delta: mpsc::Sender<Delta>,
}

impl Service {
    pub(super) fn new() -> (AggregatedDiscoveryServiceServer<Self>, Script) {
        let (full, full_streams) = mpsc::channel(8);
        let (delta, delta_streams) = mpsc::channel(8);
        let script = Script {
            full: full_streams,
            delta: delta_streams,
        };
        (
            AggregatedDiscoveryServiceServer::new(Self { full, delta }),
            script,
        )
    }
}

type Answers<A> = Pin<Box<dyn Stream<Item = Result<A, Status>> + Send>>;

fn open<Q, A: Send + 'static>(
    requests: Streaming<Q>,
    streams: &mpsc::Sender<Conversation<Q, A>>,
) -> Response<Answers<A>> {
    let (answers, receiver) = mpsc::channel(8);
    let _ = streams.try_send(Conversation { requests, answers });
    Response::new(Box::pin(stream::unfold(
        receiver,
        |mut receiver| async move { receiver.recv().await.map(|answer| (answer, receiver)) },
    )))
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Service {
    type StreamAggregatedResourcesStream = Answers<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Answers<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        Ok(open(request.into_inner(), &self.full))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Ok(open(request.into_inner(), &self.delta))
    }
}

/// Returns a discoverer and its in-memory control plane.
pub(super) fn pair(options: XdsOptions) -> (XdsDiscoverer, Script) {
    let (service, script) = Service::new();
    let (connections, receiver) = mpsc::channel::<DuplexStream>(8);
    let incoming = stream::unfold(receiver, |mut receiver| async move {
        receiver
            .recv()
            .await
            .map(|stream| (Ok::<_, std::io::Error>(stream), receiver))
    });
    tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming),
    );
    let dial = Dial::in_memory(&options, connections);
    (XdsDiscoverer::with_dial(options, dial), script)
}

pub(super) fn any(kind: ResourceType, message: &impl Message) -> Any {
    Any {
        type_url: kind.type_url().into(),
        value: message.encode_to_vec(),
    }
}

/// A listener whose routes are those of this name.
pub(super) fn listener(name: &str, routes: &str) -> (ResourceType, String, Any) {
    let named = RouteSpecifier::Rds(Rds {
        route_config_name: routes.into(),
        ..Rds::default()
    });
    listener_with(name, named)
}

/// A listener whose routes are there.
pub(super) fn listener_with(name: &str, routes: RouteSpecifier) -> (ResourceType, String, Any) {
    let manager = HttpConnectionManager {
        route_specifier: Some(routes),
        ..HttpConnectionManager::default()
    };
    let filter = Filter {
        config_type: Some(filter::ConfigType::TypedConfig(Any {
            type_url: "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager".into(),
            value: manager.encode_to_vec(),
        })),
        ..Filter::default()
    };
    let listener = Listener {
        name: name.into(),
        filter_chains: vec![FilterChain {
            filters: vec![filter],
            ..FilterChain::default()
        }],
        ..Listener::default()
    };
    let kind = ResourceType::Listener;
    (kind, name.into(), any(kind, &listener))
}

/// Returns a response with changes: these of `resources`.
pub(super) fn delta(
    kind: ResourceType,
    nonce: &str,
    version: &str,
    resources: &[(ResourceType, String, Any)],
) -> DeltaDiscoveryResponse {
    let of_kind = resources.iter().filter(|(found, _, _)| *found == kind);
    DeltaDiscoveryResponse {
        type_url: kind.type_url().into(),
        nonce: nonce.into(),
        resources: of_kind
            .map(|(_, name, resource)| Resource {
                name: name.clone(),
                version: version.into(),
                resource: Some(resource.clone()),
                ..Resource::default()
            })
            .collect(),
        ..DeltaDiscoveryResponse::default()
    }
}

/// Returns a response with all resources of a type.
pub(super) fn full(
    kind: ResourceType,
    nonce: &str,
    version: &str,
    resources: &[(ResourceType, String, Any)],
) -> DiscoveryResponse {
    let of_kind = resources.iter().filter(|(found, _, _)| *found == kind);
    DiscoveryResponse {
        type_url: kind.type_url().into(),
        nonce: nonce.into(),
        version_info: version.into(),
        resources: of_kind.map(|(_, _, resource)| resource.clone()).collect(),
        ..DiscoveryResponse::default()
    }
}
