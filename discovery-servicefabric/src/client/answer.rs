//! Interpretation of responses.

use bytes::Bytes;
use discovery_core::text::shortened;
use http::header::LOCATION;
use http::{Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::hint::{self, Context};
use super::request::Call;
use super::retry_after::retry_after;
use super::token::BearerToken;
use crate::calls::{CallError, CallErrorKind};

/// A successful response.
#[derive(Debug)]
pub(super) enum GatewayResponse {
    /// A successful response with this body, to a request with this token.
    Content(Bytes, Option<BearerToken>),
    /// 204.
    NoContent,
}

/// An error body of the gateway.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    error: GatewayError,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct GatewayError {
    #[serde(deserialize_with = "text_or_null")]
    code: String,
    #[serde(deserialize_with = "text_or_null")]
    message: String,
}

fn text_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Classifies a response as a success or an error.
pub(super) fn check_response(
    call: &Call,
    secure: bool,
    token: Option<&BearerToken>,
    response: Response<Bytes>,
) -> Result<GatewayResponse, CallError> {
    let (parts, body) = response.into_parts();
    let status = parts.status;
    if status == StatusCode::NO_CONTENT {
        return Ok(GatewayResponse::NoContent);
    }
    if status.is_success() {
        return Ok(GatewayResponse::Content(body, token.cloned()));
    }
    let said = words_of(&body);
    let context = Context {
        secure,
        sent_token: token.is_some(),
        writes: call.writes(),
        own_words: said.is_some(),
    };
    let kind = kind_of(status, said.as_ref().map(|error| error.code.as_str()));
    let mut message = status.to_string();
    let mut code = None;
    if let Some(error) = &said {
        let text = quoted(&error.message, 500, token);
        let separator = if text.is_empty() { "" } else { ": " };
        let said = code.insert(quoted(&error.code, 100, token));
        message = format!("{message}: {said}{separator}{text}");
    } else if status.is_redirection() {
        let place = parts
            .headers
            .get(LOCATION)
            .map_or(&b""[..], |value| value.as_bytes());
        let place = quoted(&String::from_utf8_lossy(place), 200, token);
        message = format!(
            "{message}: a gateway does not send elsewhere, and is not followed to `{place}`"
        );
    }
    let mut error = call.error(kind, message).with_status(status.as_u16());
    if let Some(code) = code {
        error = error.with_code(code);
    }
    if let Some(wait) = retry_after(&parts.headers) {
        error = error.with_retry_after(wait);
    }
    if let Some(hint) = hint::of_status(status, &parts.headers, context) {
        error = error.with_hint(hint);
    }
    Err(error)
}

/// The error in the gateway's own words, if the body is one.
fn words_of(body: &[u8]) -> Option<GatewayError> {
    /// Maximum length of an error body. Longer ones are not from a gateway.
    const LONGEST: usize = 64 * 1024;
    if body.len() > LONGEST {
        return None;
    }
    let body: Body = serde_json::from_slice(without_mark(body)).ok()?;
    Some(body.error).filter(|error| !error.code.is_empty())
}

/// Returns the kind of error for a status with a code.
fn kind_of(status: StatusCode, code: Option<&str>) -> CallErrorKind {
    match status.as_u16() {
        401 | 403 | 407 => CallErrorKind::Denied,
        404 => match code {
            Some(code) if names_what_is_gone(code) => CallErrorKind::Gone,
            Some(_) => CallErrorKind::Rejected,
            // A proxy or a wrong path: that must not make anything disappear.
            None => CallErrorKind::Malformed,
        },
        408 | 504 => CallErrorKind::TimedOut,
        429 | 503 => CallErrorKind::Busy,
        502 => CallErrorKind::Unreachable,
        400..=499 => CallErrorKind::Rejected,
        500..=599 => match code {
            Some("FABRIC_E_TIMEOUT") => CallErrorKind::TimedOut,
            _ => CallErrorKind::Failed,
        },
        _ => CallErrorKind::Malformed,
    }
}

/// Returns true if the code of a 404 is about the requested entity itself, as opposed to something about
/// it.
fn names_what_is_gone(code: &str) -> bool {
    matches!(
        code,
        "FABRIC_E_NODE_NOT_FOUND"
            | "FABRIC_E_APPLICATION_TYPE_NOT_FOUND"
            | "FABRIC_E_APPLICATION_NOT_FOUND"
            | "FABRIC_E_SERVICE_TYPE_NOT_FOUND"
            | "FABRIC_E_SERVICE_DOES_NOT_EXIST"
            | "FABRIC_E_PARTITION_NOT_FOUND"
            | "FABRIC_E_REPLICA_DOES_NOT_EXIST"
            | "FABRIC_E_NAME_DOES_NOT_EXIST"
            | "FABRIC_E_PROPERTY_DOES_NOT_EXIST"
            | "FABRIC_E_SERVICE_MANIFEST_NOT_FOUND"
            | "FABRIC_E_HEALTH_ENTITY_NOT_FOUND"
    )
}

/// Reads the body of a response that must have one.
pub(super) fn decode<T: DeserializeOwned>(
    call: &Call,
    answer: &GatewayResponse,
) -> Result<T, CallError> {
    let (body, token) = match answer {
        GatewayResponse::Content(body, token) => (body, token.as_ref()),
        GatewayResponse::NoContent if call.of_entity => {
            let error = call.error(CallErrorKind::Gone, "204 No Content: it does not exist");
            return Err(error.with_status(204));
        }
        GatewayResponse::NoContent => {
            let message = "204 No Content, which is no answer to a question about a list";
            return Err(call
                .error(CallErrorKind::Malformed, message)
                .with_status(204));
        }
    };
    serde_json::from_slice(without_mark(body)).map_err(|error| {
        // The error may quote the body.
        let message = format!(
            "the response is not one of a gateway: {}",
            quoted(&error.to_string(), 200, token)
        );
        call.error(CallErrorKind::Malformed, message)
    })
}

/// JSON without the byte order mark that some serializers begin with.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Returns a text of the server for a message: short, printable, and without the token, in case the text repeats
/// it.
fn quoted(text: &str, most: usize, token: Option<&BearerToken>) -> String {
    match token {
        Some(token) => shortened(&token.removed_from(text), most),
        None => shortened(text, most),
    }
}
