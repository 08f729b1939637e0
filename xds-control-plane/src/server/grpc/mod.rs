//! The discovery services over gRPC.

mod codec;
mod inbound;
mod names;
mod stream;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::routing::post;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use futures_util::Stream;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Request, Response as Answer, Status, Streaming};

use self::codec::XdsCodec;
use self::inbound::Inbound;
use self::stream::Conversation;
use super::connection::PeerAddress;
use super::context::Context;
use super::fetch::{FetchError, fetch};
use super::nodes::StreamKind;
use super::protocol::Protocol;
use super::wire::Response;
use crate::snapshot::{ResourceType, Subscription};

/// The names of the services, as reflection and health have them.
pub(crate) const SERVICES: [&str; 5] = [
    "envoy.service.discovery.v3.AggregatedDiscoveryService",
    "envoy.service.cluster.v3.ClusterDiscoveryService",
    "envoy.service.endpoint.v3.EndpointDiscoveryService",
    "envoy.service.listener.v3.ListenerDiscoveryService",
    "envoy.service.route.v3.RouteDiscoveryService",
];

/// The methods of all services.
pub(crate) fn routes(context: &Arc<Context>) -> Router {
    let of_one_type = [
        (ResourceType::Cluster, "Clusters"),
        (ResourceType::Endpoint, "Endpoints"),
        (ResourceType::Listener, "Listeners"),
        (ResourceType::Route, "Routes"),
    ];
    let [aggregated, of_types @ ..] = SERVICES;
    let router = Router::new();
    let router = add_streams(
        router,
        context,
        &format!("/{aggregated}/StreamAggregatedResources"),
        &format!("/{aggregated}/DeltaAggregatedResources"),
        None,
    );
    of_types.into_iter().zip(of_one_type).fold(
        router,
        |router, (service, (resource_type, plural))| {
            let router = add_streams(
                router,
                context,
                &format!("/{service}/Stream{plural}"),
                &format!("/{service}/Delta{plural}"),
                Some(resource_type),
            );
            add_fetch(
                router,
                context,
                &format!("/{service}/Fetch{plural}"),
                resource_type,
            )
        },
    )
}

fn add_streams(
    router: Router,
    context: &Arc<Context>,
    sotw: &str,
    delta: &str,
    only: Option<ResourceType>,
) -> Router {
    let stream_of = |context: &Arc<Context>| Streams {
        context: Arc::clone(context),
        only,
    };
    let (for_sotw, for_delta) = (stream_of(context), stream_of(context));
    router
        .route(
            sotw,
            post(move |request| answer_stream::<DiscoveryRequest>(for_sotw.clone(), request)),
        )
        .route(
            delta,
            post(move |request| answer_stream::<DeltaDiscoveryRequest>(for_delta.clone(), request)),
        )
}

fn add_fetch(
    router: Router,
    context: &Arc<Context>,
    path: &str,
    resource_type: ResourceType,
) -> Router {
    let call = Fetch {
        context: Arc::clone(context),
        resource_type,
    };
    router.route(
        path,
        post(move |request: HttpRequest| {
            let call = call.clone();
            async move {
                let limit = call.context.options.request_bytes;
                Grpc::new(XdsCodec::<DiscoveryRequest>::new(
                    call.context.options.names_per_stream,
                ))
                .max_decoding_message_size(limit)
                .unary(call, request)
                .await
            }
        }),
    )
}

async fn answer_stream<R: Inbound>(
    streams: Streams,
    request: HttpRequest,
) -> http::Response<tonic::body::Body> {
    let limit = streams.context.options.request_bytes;
    Grpc::new(XdsCodec::<R>::new(streams.context.options.names_per_stream))
        .max_decoding_message_size(limit)
        .streaming(streams, request)
        .await
}

/// A method that streams.
#[derive(Clone)]
struct Streams {
    context: Arc<Context>,
    only: Option<ResourceType>,
}

type Responses = Pin<Box<dyn Stream<Item = Result<Response, Status>> + Send>>;

impl<R: Inbound> StreamingService<R> for Streams {
    type Response = Response;
    type ResponseStream = Responses;
    type Future = std::future::Ready<Result<Answer<Responses>, Status>>;

    fn call(&mut self, request: Request<Streaming<R>>) -> Self::Future {
        std::future::ready(self.begin(request))
    }
}

impl Streams {
    fn begin<R: Inbound>(
        &self,
        request: Request<Streaming<R>>,
    ) -> Result<Answer<Responses>, Status> {
        let kind = StreamKind {
            delta: R::PROTOCOL == Protocol::Delta,
            subscription: match self.only {
                Some(_) => Subscription::Separate,
                None => Subscription::Aggregated,
            },
        };
        let limit = self.context.options.streams_per_peer;
        let record = self
            .context
            .nodes
            .open(kind, peer(&request), limit)
            .map_err(|_| {
                self.context.metrics.turned_away();
                Status::resource_exhausted(format!(
                    "{limit} streams are open from this address, which is as many as there may be"
                ))
            })?;
        let conversation = Conversation::new(
            Arc::clone(&self.context),
            record,
            self.only,
            request.into_inner(),
        );
        Ok(Answer::new(Box::pin(conversation.into_stream())))
    }
}

/// A method that is asked once.
#[derive(Clone)]
struct Fetch {
    context: Arc<Context>,
    resource_type: ResourceType,
}

impl UnaryService<DiscoveryRequest> for Fetch {
    type Response = Response;
    type Future = std::future::Ready<Result<Answer<Response>, Status>>;

    fn call(&mut self, request: Request<DiscoveryRequest>) -> Self::Future {
        let fetched = fetch(
            &self.context,
            self.resource_type,
            Subscription::Separate,
            &request.into_inner(),
        );
        std::future::ready(match fetched {
            // There is no word for "unchanged" in gRPC: the version is the same, and nothing comes with it.
            Ok(fetched) => Ok(Answer::new(fetched.response)),
            Err(error @ FetchError::NotReady) => Err(Status::unavailable(error.to_string())),
            Err(error) => Err(Status::invalid_argument(error.to_string())),
        })
    }
}

fn peer<T>(request: &Request<T>) -> Option<SocketAddr> {
    let PeerAddress(address) = request.extensions().get::<PeerAddress>()?;
    Some(*address)
}
