//! Polls: `POST /v3/discovery:clusters` and the like, in the canonical JSON of protobuf.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::post;
use http::{Request, Response as HttpResponse, StatusCode, header};
use prost_reflect::{DeserializeOptions, DynamicMessage, SerializeOptions};
use xds_types::pb::envoy::service::discovery::v3::DiscoveryRequest;

use super::context::Context;
use super::descriptors;
use super::fetch::{FetchError, fetch};
use crate::snapshot::{ResourceType, Subscription};

const REQUEST: &str = "envoy.service.discovery.v3.DiscoveryRequest";
const RESPONSE: &str = "envoy.service.discovery.v3.DiscoveryResponse";

/// The time limit for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why a poll has no response.
#[derive(Debug, thiserror::Error)]
enum RestError {
    #[error("the body cannot be read, or is longer than {0} bytes")]
    Body(usize),
    #[error("the body has not arrived within {BODY_TIMEOUT:?}")]
    Slow,
    #[error("the body is no JSON of a DiscoveryRequest: {0}")]
    Json(String),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the response cannot be written as JSON: {0}")]
    Response(String),
}

/// The four paths.
pub(crate) fn routes(context: &Arc<Context>) -> Router {
    let paths = [
        ("/v3/discovery:clusters", ResourceType::Cluster),
        ("/v3/discovery:endpoints", ResourceType::Endpoint),
        ("/v3/discovery:listeners", ResourceType::Listener),
        ("/v3/discovery:routes", ResourceType::Route),
    ];
    paths
        .into_iter()
        .fold(Router::new(), |router, (path, resource_type)| {
            let context = Arc::clone(context);
            let answer = move |request: Request<Body>| {
                let context = Arc::clone(&context);
                async move { answer(&context, resource_type, request.into_body()).await }
            };
            router.route(path, post(answer))
        })
}

async fn answer(context: &Context, resource_type: ResourceType, body: Body) -> HttpResponse<Body> {
    match poll(context, resource_type, body).await {
        Ok(Some(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(None) => StatusCode::NOT_MODIFIED.into_response(),
        Err(error) => {
            let status = match &error {
                RestError::Body(_) => StatusCode::PAYLOAD_TOO_LARGE,
                RestError::Slow => StatusCode::REQUEST_TIMEOUT,
                RestError::Fetch(FetchError::NotReady) => StatusCode::SERVICE_UNAVAILABLE,
                RestError::Json(_) | RestError::Fetch(_) => StatusCode::BAD_REQUEST,
                RestError::Response(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            let body = serde_json::json!({ "error": error.to_string() }).to_string();
            (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    }
}

/// Returns the response as JSON, or nothing if the client has that version already.
async fn poll(
    context: &Context,
    resource_type: ResourceType,
    body: Body,
) -> Result<Option<Vec<u8>>, RestError> {
    let limit = context.options.request_bytes;
    let body = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, limit))
        .await
        .map_err(|_| RestError::Slow)?
        .map_err(|_| RestError::Body(limit))?;
    let request = read(&body).map_err(RestError::Json)?;
    let fetched = fetch(context, resource_type, Subscription::Rest, &request)?;
    if fetched.is_unchanged {
        return Ok(None);
    }
    let json = write(&fetched.response.encode_to_vec()).map_err(RestError::Response)?;
    Ok(Some(json))
}

/// Field names may be written in both ways; those of newer clients are passed over.
fn read(json: &[u8]) -> Result<DiscoveryRequest, String> {
    let descriptor = descriptors::message(REQUEST).ok_or("its descriptor is missing")?;
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let mut json = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize_with_options(descriptor, &mut json, &options)
        .map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    message.transcode_to().map_err(|error| error.to_string())
}

fn write(response: &[u8]) -> Result<Vec<u8>, String> {
    let descriptor = descriptors::message(RESPONSE).ok_or("its descriptor is missing")?;
    let message =
        DynamicMessage::decode(descriptor, response).map_err(|error| error.to_string())?;
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut json);
    message
        .serialize_with_options(&mut serializer, &SerializeOptions::new())
        .map_err(|error| error.to_string())?;
    Ok(json)
}
