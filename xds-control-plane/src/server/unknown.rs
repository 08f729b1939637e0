//! The response for unknown paths.

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response, StatusCode, header};
use serde_json::json;
use tonic::Status;

/// Responds to gRPC clients with a gRPC status, and to all others with 404.
pub(super) async fn answer(request: Request<Body>) -> Response<Body> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/grpc") {
        return Status::unimplemented("there is no such method here").into_http();
    }
    let error = "there is nothing here; polls go to /v3/discovery:clusters, endpoints, listeners and routes";
    let body = json!({ "error": error }).to_string();
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::NOT_FOUND, headers, body).into_response()
}
