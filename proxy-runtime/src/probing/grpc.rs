//! Probes by the gRPC health checking protocol.

use http::StatusCode;
#[cfg(feature = "http2")]
use http::uri::InvalidUri;
use proxy_model::compiled::{Cluster, Destination};

#[cfg(feature = "http2")]
use super::upstream_probe::AGENT;
use crate::health::ProbeError;
#[cfg(feature = "http2")]
use crate::http1::Method;
use crate::upstream::Upstreams;
#[cfg(feature = "http2")]
use crate::upstream::{OwnRequest, OwnResponse};

/// Most bytes of a response that are looked at: a message has 2 and a prefix of 5.
#[cfg(feature = "http2")]
const MOST: usize = 64;

/// Asks a destination whether `service` is served.
#[cfg(feature = "http2")]
pub(super) async fn probe(
    upstreams: &Upstreams,
    cluster: &Cluster,
    destination: &Destination,
    service: &str,
) -> Result<StatusCode, ProbeError> {
    let address = destination.health_address();
    let request =
        request(destination, service).map_err(|error| ProbeError::NoAnswer(error.into()))?;
    let call = upstreams.call_once(cluster.id(), address, cluster.upstream(), request, MOST);
    let response = call.await.map_err(ProbeError::NoAnswer)?;
    let OwnResponse {
        status,
        fields,
        content,
    } = response;
    if status != StatusCode::OK {
        // An HTTP error says more than the lack of a gRPC status.
        return Ok(status);
    }
    let said = match fields.get("grpc-status").map(|code| code.as_bytes()) {
        None => "200 without a grpc-status".to_owned(),
        Some(b"0") => match serving_status(&content) {
            Some(SERVING) => return Ok(StatusCode::OK),
            Some(0) => "UNKNOWN".to_owned(),
            Some(2) => "NOT_SERVING".to_owned(),
            Some(other) => format!("the unknown status {other}"),
            None => "something that is no HealthCheckResponse".to_owned(),
        },
        Some(b"5") => format!(
            "grpc-status 5: it has no service `{}`",
            service.escape_debug()
        ),
        Some(b"12") => "grpc-status 12: it does not speak grpc.health.v1".to_owned(),
        Some(code) => {
            let code = String::from_utf8_lossy(code);
            // The destination must not choose the length of a line in logs and on pages.
            let code: String = code.chars().take(8).collect();
            format!("grpc-status {}", code.escape_debug())
        }
    };
    Err(ProbeError::Rejected(said))
}

#[cfg(not(feature = "http2"))]
pub(super) async fn probe(
    _: &Upstreams,
    _: &Cluster,
    _: &Destination,
    _: &str,
) -> Result<StatusCode, ProbeError> {
    Err(ProbeError::NoAnswer(
        "this build does not speak HTTP/2".into(),
    ))
}

#[cfg(feature = "http2")]
fn request(destination: &Destination, service: &str) -> Result<OwnRequest, InvalidUri> {
    let address = destination.health_address();
    let authority = destination.host().unwrap_or_else(|| address.authority());
    let target = "/grpc.health.v1.Health/Check".to_owned();
    let lines =
        format!("User-Agent: {AGENT}\r\nContent-Type: application/grpc\r\nTE: trailers\r\n");
    OwnRequest::new(Method::Post, target, authority, &lines, &message(service))
}

/// A `HealthCheckRequest` with the prefix of gRPC.
#[cfg(feature = "http2")]
fn message(service: &str) -> Vec<u8> {
    let mut content = Vec::new();
    // An empty name stands for the whole server, and is left out like all defaults.
    if !service.is_empty() {
        // Field 1, of a length.
        content.push(0x0a);
        push_varint(service.len() as u64, &mut content);
        content.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    // The prefix of a message: not compressed, then the length.
    let mut message = vec![0];
    message.extend_from_slice(&length.to_be_bytes());
    message.append(&mut content);
    message
}

#[cfg(feature = "http2")]
fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// `SERVING` of `ServingStatus`.
#[cfg(feature = "http2")]
const SERVING: u64 = 1;

/// The status of a `HealthCheckResponse` with the prefix of gRPC: field 1, a number, which is left out if it is 0.
#[cfg(feature = "http2")]
fn serving_status(message: &[u8]) -> Option<u64> {
    let (prefix, content) = message.split_at_checked(5)?;
    let length = u32::from_be_bytes(prefix[1..].try_into().ok()?);
    if prefix[0] != 0 || length as usize != content.len() {
        return None;
    }
    match content {
        [] => Some(0),
        // All known values have one byte.
        [0x08, status] if *status < 0x80 => Some(u64::from(*status)),
        _ => None,
    }
}

#[cfg(all(test, feature = "http2"))]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_service() {
        assert_eq!(message(""), [0, 0, 0, 0, 0]);
        assert_eq!(message("ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        let long = message(&"s".repeat(300));
        assert_eq!(long[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 0x02]);
    }

    #[test]
    fn a_response_has_one_status() {
        for (message, expected) in [
            (b"\0\0\0\0\x02\x08\x01" as &[u8], Some(1)),
            (&[0, 0, 0, 0, 2, 8, 2], Some(2)),
            (&[0, 0, 0, 0, 0], Some(0)),
            (&[], None),
            (&[0, 0, 0, 0], None),
            (&[1, 0, 0, 0, 2, 8, 1], None),
            (&[0, 0, 0, 0, 3, 8, 1], None),
            (&[0, 0, 0, 0, 2, 16, 1], None),
            (&[0, 0, 0, 0, 2, 8, 0x81], None),
            (&[0, 0xff, 0xff, 0xff, 0xff, 8, 1], None),
        ] {
            assert_eq!(serving_status(message), expected, "{message:?}");
        }
    }
}
