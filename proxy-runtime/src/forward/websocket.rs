//! The handshake of WebSocket (RFC 6455 section 4), between any two versions of HTTP.
//!
//! The proxy takes part in it: it rejects an invalid handshake of a client before a destination sees it, and
//! accepts a destination's `101` only with the correct accept key (RFC 6455 section 4.1). Over HTTP/2 there is no
//! key (RFC 8441 section 5), so the proxy adds and checks it. Subprotocols and extensions are for the two ends to
//! agree on.

use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Method, StatusCode};
use sha1::{Digest, Sha1};

use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::headers;

/// The protocol's name in `Upgrade`.
pub(crate) const PROTOCOL: HeaderValue = HeaderValue::from_static("websocket");

/// The only version of the protocol (RFC 6455 section 4.1).
pub(crate) const VERSION: HeaderValue = HeaderValue::from_static("13");

/// RFC 6455 section 1.3.
const PROOF: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Digits of a key: 16 bytes in base64, without the two signs that fill it up.
const KEY_DIGITS: usize = 22;

/// The error in a client's handshake (RFC 6455 section 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRequest {
    #[error("a WebSocket is asked for with another method than GET")]
    Method,
    #[error("`Sec-WebSocket-Key` has to be there once, with 16 bytes in base64")]
    Key,
    #[error("`Sec-WebSocket-Version` has to be there once")]
    NoVersion,
    #[error("`Sec-WebSocket-Version` has to be 13")]
    Version,
}

/// The error in the `101` of a destination (RFC 6455 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BadResponse {
    #[error("the destination switched to another protocol than `websocket`")]
    Protocol,
    #[error("the destination's `101` has no `Connection: upgrade`")]
    Connection,
    #[error("`Sec-WebSocket-Accept` has to be there once, with the proof for the key")]
    Proof,
}

/// Checks a client's handshake. Over HTTP/2, the key may be absent.
///
/// # Errors
///
/// The handshake is invalid: 400, or 426 if the client requests another version and the HTTP version allows that
/// status.
pub(crate) fn check_request(
    method: &Method,
    headers: &HeaderMap,
    is_http2: bool,
) -> Result<(), ForwardError> {
    let is_key_due = !is_http2 || headers.contains_key(SEC_WEBSOCKET_KEY);
    let bad = if *method != Method::GET {
        BadRequest::Method
    } else if is_key_due && key(headers).is_none() {
        BadRequest::Key
    } else {
        match only(headers, &SEC_WEBSOCKET_VERSION) {
            None => BadRequest::NoVersion,
            Some(version) if *version != VERSION => BadRequest::Version,
            Some(_) => return Ok(()),
        }
    };
    Err(rejected(bad, is_http2))
}

fn rejected(bad: BadRequest, is_http2: bool) -> ForwardError {
    let status = match bad {
        // RFC 9110 section 15.5.22 wants `Upgrade` with it, which HTTP/2 does not have.
        BadRequest::Version if !is_http2 => StatusCode::UPGRADE_REQUIRED,
        _ => StatusCode::BAD_REQUEST,
    };
    ForwardError::new(ForwardErrorKind::RequestRejected, status).with_source(bad)
}

/// Adds the supported version of WebSocket to the response to a failed handshake (RFC 6455 section 4.4).
pub(crate) fn tell_version(error: &ForwardError, headers: &mut HeaderMap) {
    let source = std::error::Error::source(error);
    let bad = source.and_then(|source| source.downcast_ref::<BadRequest>());
    if bad != Some(&BadRequest::Version) {
        return;
    }
    headers.insert(SEC_WEBSOCKET_VERSION, VERSION);
    // RFC 9110 section 15.5.22 requires `Upgrade`.
    if error.status() == StatusCode::UPGRADE_REQUIRED {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, PROTOCOL);
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

fn key(headers: &HeaderMap) -> Option<&HeaderValue> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    only(headers, &SEC_WEBSOCKET_KEY).filter(|key| {
        let digits = key.as_bytes().strip_suffix(b"==");
        digits.is_some_and(|digits| digits.len() == KEY_DIGITS && digits.iter().all(is_digit))
    })
}

/// A key, and the answer that proves that a server has understood it.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    pub(crate) key: HeaderValue,
    pub(crate) proof: HeaderValue,
}

impl Challenge {
    /// Reads the challenge from a request's headers.
    ///
    /// # Errors
    ///
    /// `Sec-WebSocket-Key` is missing, repeated or malformed: 400.
    pub(crate) fn given(headers: &HeaderMap) -> Result<Self, ForwardError> {
        match key(headers) {
            Some(key) => Ok(Self::with_key(key.clone())),
            None => Err(rejected(BadRequest::Key, false)),
        }
    }

    /// The challenge in a request with these headers, or a new one if it has none.
    ///
    /// # Errors
    ///
    /// The client sent something that is not a key: 400.
    #[cfg(feature = "http2")]
    pub(crate) fn given_or_new(headers: &HeaderMap) -> Result<Self, ForwardError> {
        if headers.contains_key(SEC_WEBSOCKET_KEY) {
            return Self::given(headers);
        }
        Ok(Self::with_key(to_value(&fastrand::u128(..).to_ne_bytes())))
    }

    fn with_key(key: HeaderValue) -> Self {
        let mut hash = Sha1::new();
        hash.update(key.as_bytes());
        hash.update(PROOF);
        let proof = to_value(&hash.finalize());
        Self { key, proof }
    }

    /// Checks the headers of a destination's `101`, and removes the accept key, which only a client with a key gets.
    ///
    /// # Errors
    ///
    /// The `101` is no valid WebSocket handshake: 502.
    pub(crate) fn check(&self, headers: &mut HeaderMap) -> Result<(), ForwardError> {
        let is_websocket = |protocol: &&HeaderValue| {
            let protocol = protocol.as_bytes();
            protocol.eq_ignore_ascii_case(PROTOCOL.as_bytes())
        };
        let bad = if only(headers, &UPGRADE).filter(is_websocket).is_none() {
            BadResponse::Protocol
        } else if !headers::has_token(headers, &CONNECTION, "upgrade") {
            BadResponse::Connection
        } else if only(headers, &SEC_WEBSOCKET_ACCEPT) != Some(&self.proof) {
            BadResponse::Proof
        } else {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
            return Ok(());
        };
        let failed = ForwardError::new(ForwardErrorKind::ResponseHeaders, StatusCode::BAD_GATEWAY);
        Err(failed.with_source(bad))
    }
}

fn to_value(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_str(&base64(bytes)).expect("the alphabet of base64 is printable ASCII")
}

/// RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).map_or(0, |byte| u32::from(*byte));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            // A group of fewer bytes is filled up.
            text.push(if digit <= group.len() {
                char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    // The example of RFC 6455 section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn map(fields: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn the_proof_is_that_of_the_rfc() {
        let headers = map(&[(SEC_WEBSOCKET_KEY, KEY)]);
        let challenge = Challenge::given(&headers).unwrap();
        assert_eq!(challenge.key, KEY);
        assert_eq!(challenge.proof, ACCEPT);
    }

    #[cfg(feature = "http2")]
    #[test]
    fn n13_a_key_is_made_or_kept_or_rejected() {
        let mut headers = HeaderMap::new();
        assert!(Challenge::given(&headers).is_err(), "N14");
        let made = Challenge::given_or_new(&headers).unwrap().key;
        headers.insert(SEC_WEBSOCKET_KEY, made.clone());
        assert_eq!(Challenge::given_or_new(&headers).unwrap().key, made);

        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static("Foo"));
        let error = Challenge::given_or_new(&headers).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_key_is_sixteen_bytes_in_base64() {
        for (value, is_key) in [
            (KEY, true),
            ("AAAAAAAAAAAAAAAAAAAAAA==", true),
            ("++++++++++//////////++==", true),
            ("", false),
            ("Foo", false),
            // 18 bytes, 17 bytes, 16 bytes without their end, and what is not base64.
            ("AAAAAAAAAAAAAAAAAAAAAAAA", false),
            ("AAAAAAAAAAAAAAAAAAAAAAA=", false),
            ("AAAAAAAAAAAAAAAAAAAAAA", false),
            ("AAAAAAAAAA AAAAAAAAAAA==", false),
            ("AAAAAAAAAA_-AAAAAAAAAA==", false),
            ("AAAAAAAAAAAAAAAAAAAA====", false),
        ] {
            let headers = map(&[(SEC_WEBSOCKET_KEY, value)]);
            assert_eq!(key(&headers).is_some(), is_key, "{value}");
        }
        let twice = map(&[(SEC_WEBSOCKET_KEY, KEY), (SEC_WEBSOCKET_KEY, KEY)]);
        assert!(key(&twice).is_none());
    }

    #[test]
    fn only_the_right_proof_will_do() {
        let challenge = Challenge::given(&map(&[(SEC_WEBSOCKET_KEY, KEY)])).unwrap();
        let good = map(&[
            (CONNECTION, "keep-alive, Upgrade"),
            (UPGRADE, "WebSocket"),
            (SEC_WEBSOCKET_ACCEPT, ACCEPT),
        ]);
        for (name, value) in [
            (SEC_WEBSOCKET_ACCEPT, Some("other")),
            (SEC_WEBSOCKET_ACCEPT, None),
            (UPGRADE, Some("websocket, h2c")),
            (UPGRADE, None),
            (CONNECTION, Some("keep-alive")),
            (CONNECTION, None),
        ] {
            let mut headers = good.clone();
            headers.remove(&name);
            headers.extend(value.map(|value| (name.clone(), HeaderValue::from_static(value))));
            assert!(challenge.check(&mut headers).is_err(), "{name}: {value:?}");
        }
        let mut twice = good.clone();
        twice.append(SEC_WEBSOCKET_ACCEPT, challenge.proof.clone());
        assert!(challenge.check(&mut twice).is_err());

        let mut headers = good;
        challenge.check(&mut headers).unwrap();
        assert!(!headers.contains_key(SEC_WEBSOCKET_ACCEPT));
    }
}
