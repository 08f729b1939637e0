//! The handshake of WebSocket (RFC 6455 section 4), where one side speaks HTTP/1.1 and the other HTTP/2.
//!
//! HTTP/2 asks for a WebSocket without the key and its proof (RFC 8441 section 5), so the proxy makes what is missing and
//! checks what it has made.

use http::header::{HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::{HeaderMap, StatusCode};
use sha1::{Digest, Sha1};

use super::error::{ForwardError, ForwardErrorKind};

/// RFC 6455 section 1.3.
const PROOF: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Length of a key: 16 bytes in base64.
const KEY_LENGTH: usize = 24;

/// A key, and the answer that proves that a server has understood it.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    pub(crate) key: HeaderValue,
    pub(crate) proof: HeaderValue,
}

impl Challenge {
    /// The challenge in a request with these headers.
    ///
    /// # Errors
    ///
    /// There is none, or it is not a key: 400.
    pub(crate) fn given(headers: &HeaderMap) -> Result<Self, ForwardError> {
        match headers.get(SEC_WEBSOCKET_KEY) {
            Some(key) if key.len() == KEY_LENGTH => Ok(Self::with_key(key.clone())),
            _ => Err(ForwardError::new(
                ForwardErrorKind::RequestCreation,
                StatusCode::BAD_REQUEST,
            )),
        }
    }

    /// The challenge in a request with these headers, or a new one if it has none.
    ///
    /// # Errors
    ///
    /// The client sent something that is not a key: 400.
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

    /// Checks the proof in a response's headers, and takes it out: the client did not ask for it.
    ///
    /// # Errors
    ///
    /// The destination answers `101` and does not speak WebSocket.
    pub(crate) fn check(&self, headers: &mut HeaderMap) -> Result<(), ForwardError> {
        match headers.remove(SEC_WEBSOCKET_ACCEPT) {
            Some(proof) if proof == self.proof => Ok(()),
            _ => Err(ForwardError::new(
                ForwardErrorKind::ResponseHeaders,
                StatusCode::BAD_GATEWAY,
            )),
        }
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

    #[test]
    fn n13_a_key_is_made_or_kept_or_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!(
            Challenge::given_or_new(&headers).unwrap().key.len(),
            KEY_LENGTH
        );
        assert!(Challenge::given(&headers).is_err(), "N14");

        // The example of RFC 6455 section 1.3.
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        headers.insert(SEC_WEBSOCKET_KEY, key.clone());
        let challenge = Challenge::given_or_new(&headers).unwrap();
        assert_eq!(challenge.key, key);
        assert_eq!(challenge.proof, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");

        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static("Foo"));
        let error = Challenge::given_or_new(&headers).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn only_the_right_proof_will_do() {
        let challenge = Challenge::given_or_new(&HeaderMap::new()).unwrap();
        let mut headers = HeaderMap::new();
        assert!(challenge.check(&mut headers).is_err());
        headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("other"));
        assert!(challenge.check(&mut headers).is_err());
        headers.insert(SEC_WEBSOCKET_ACCEPT, challenge.proof.clone());
        challenge.check(&mut headers).unwrap();
        assert!(headers.is_empty());
    }
}
