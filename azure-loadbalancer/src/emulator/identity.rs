//! The sources of tokens: the endpoint of client credentials, and the managed identity of a machine.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::answer::Reply;
use super::rejection::Rejection;

/// The token that is issued if any token is accepted.
const ANY: &str = "emulated-token";
/// The lifetime of a token, in seconds.
const LIFETIME: u32 = 3_600;

/// Handles a token request. `None` if it is another request.
pub(super) fn answer(
    request: &Request<Bytes>,
    token: Option<&str>,
) -> Option<Result<Reply, Rejection>> {
    let segments: Vec<_> = request.uri().path().trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["metadata", "identity", "oauth2", "token"] => Some(managed(request, token)),
        [_tenant, "oauth2", "v2.0", "token"] => Some(granted(request, token)),
        _ => None,
    }
}

/// Serves the instance metadata service. The header keeps out attackers who can only make a machine fetch a
/// URL.
fn managed(request: &Request<Bytes>, token: Option<&str>) -> Result<Reply, Rejection> {
    let has_header = request
        .headers()
        .get("metadata")
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    let query: Vec<_> = parameters(request.uri().query().unwrap_or_default().as_bytes());
    let resource = query
        .iter()
        .find(|(name, _)| name == "resource")
        .map(|(_, value)| value.clone());
    match resource {
        _ if !has_header => Err(Rejection::bad(
            "invalid_request",
            "Required metadata header not specified",
        )),
        None => Err(Rejection::bad(
            "invalid_request",
            "Required query variable 'resource' is missing",
        )),
        Some(resource) => Ok(Reply::ok(json!({
            "access_token": token.unwrap_or(ANY),
            // The real service writes numbers as texts, too.
            "expires_in": LIFETIME.to_string(),
            "resource": resource,
            "token_type": "Bearer",
        }))),
    }
}

/// Serves the token endpoint of OAuth 2.0 (RFC 6749, section 4.4).
fn granted(request: &Request<Bytes>, token: Option<&str>) -> Result<Reply, Rejection> {
    let form = parameters(request.body());
    let value = |name: &str| {
        form.iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value.as_str())
    };
    let rejected = |code: &str, why: String| {
        let body: Value = json!({ "error": code, "error_description": why });
        Ok(Reply {
            status: StatusCode::BAD_REQUEST,
            body: Some(body),
            headers: Vec::new(),
        })
    };
    if request.method() != Method::POST || value("grant_type") != "client_credentials" {
        return rejected(
            "unsupported_grant_type",
            "AADSTS70003: the grant type is not supported.".to_owned(),
        );
    }
    let has_secret = !value("client_secret").is_empty() || !value("client_assertion").is_empty();
    if value("client_id").is_empty() || !has_secret {
        return rejected(
            "invalid_client",
            "AADSTS7000216: 'client_assertion' or 'client_secret' is required.".to_owned(),
        );
    }
    if value("client_secret") == "wrong" {
        return rejected(
            "invalid_client",
            "AADSTS7000215: Invalid client secret provided.".to_owned(),
        );
    }
    Ok(Reply::ok(json!({
        "access_token": token.unwrap_or(ANY),
        "expires_in": LIFETIME,
        "token_type": "Bearer",
    })))
}

fn parameters(form: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(form).into_owned().collect()
}
