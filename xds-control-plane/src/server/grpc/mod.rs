//! The discovery services over gRPC.

mod inbound;
mod names;
mod requests;
mod responses;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::post;
use futures_util::{Stream, stream as streams};
use tonic::Status;
use xds_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use self::inbound::Inbound;
use self::requests::{RequestLimits, Requests};
use self::responses::respond;
use self::stream::Conversation;
use super::connection::PeerAddress;
use super::context::Context;
use super::fetch::{FetchError, fetch};
use super::nodes::StreamKind;
use super::protocol::StreamProtocol;
use super::wire::{Framed, Response};
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
    let (for_sotw, for_delta) = (Arc::clone(context), Arc::clone(context));
    router
        .route(
            sotw,
            post(async move |request| {
                respond(converse::<DiscoveryRequest>(for_sotw, only, request))
            }),
        )
        .route(
            delta,
            post(async move |request| {
                respond(converse::<DeltaDiscoveryRequest>(for_delta, only, request))
            }),
        )
}

fn add_fetch(
    router: Router,
    context: &Arc<Context>,
    path: &str,
    resource_type: ResourceType,
) -> Router {
    let context = Arc::clone(context);
    router.route(
        path,
        post(async move |request| {
            let answer = answer(&context, resource_type, request).await;
            respond(answer.map(|framed| streams::iter([Ok(framed)])))
        }),
    )
}

fn requests<R: Inbound>(context: &Context, request: Request) -> Result<Requests<R>, Status> {
    let limits = RequestLimits {
        bytes: context.options.request_bytes,
        names: context.options.names_per_stream,
    };
    let (parts, body) = request.into_parts();
    Requests::new(&parts.headers, body, limits)
}

/// Begins a stream.
fn converse<R: Inbound>(
    context: Arc<Context>,
    only: Option<ResourceType>,
    request: Request,
) -> Result<impl Stream<Item = Result<Framed, Status>> + Send + use<R>, Status> {
    let kind = StreamKind {
        delta: R::PROTOCOL == StreamProtocol::Delta,
        subscription: match only {
            Some(_) => Subscription::Separate,
            None => Subscription::Aggregated,
        },
    };
    let peer = request.extensions().get::<PeerAddress>();
    let peer = peer.map(|PeerAddress(address)| *address);
    let requests = requests::<R>(&context, request)?;
    let limit = context.options.streams_per_peer;
    let record = context.nodes.open(kind, peer, limit).map_err(|_| {
        context.metrics.turned_away();
        Status::resource_exhausted(format!(
            "{limit} streams are open from this address, which is as many as there may be"
        ))
    })?;
    Ok(Conversation::new(context, record, only, requests).into_stream())
}

/// Handles a unary method.
async fn answer(
    context: &Context,
    resource_type: ResourceType,
    request: Request,
) -> Result<Framed, Status> {
    let request = requests::<DiscoveryRequest>(context, request)?
        .only()
        .await?;
    let fetched = fetch(context, resource_type, Subscription::Separate, &request);
    // There is no word for "unchanged" in gRPC: the version is the same, and nothing comes with it.
    let response = fetched.map_err(|error| match error {
        FetchError::NotReady => Status::unavailable(error.to_string()),
        FetchError::OtherType { .. } | FetchError::TooManyNames { .. } => {
            Status::invalid_argument(error.to_string())
        }
    })?;
    framed(&response.response, context)
}

fn framed(response: &Response, context: &Context) -> Result<Framed, Status> {
    response
        .framed(&context.blocks)
        .map_err(|error| Status::resource_exhausted(error.to_string()))
}
