//! Responses in gzip.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::HeaderValue;

use crate::{TransportError, TransportErrorKind};

/// The name of the encoding in headers.
pub(crate) const NAME: HeaderValue = HeaderValue::from_static("gzip");

/// Returns whether an encoding is gzip. Names are in any case, and some proxies use the old one (RFC 9110, 8.4.1).
pub(crate) fn is_name(encoding: &HeaderValue) -> bool {
    let name = encoding.as_bytes().trim_ascii();
    name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip")
}

/// Returns true if the value of `Content-Encoding` names no encoding (`identity`, which servers may leave out).
pub(crate) fn is_identity(encoding: &HeaderValue) -> bool {
    let name = encoding.as_bytes().trim_ascii();
    name.is_empty() || name.eq_ignore_ascii_case(b"identity")
}

/// The content of a compressed body, which may be thousands of times as large: decompression stops at `most` bytes.
pub(crate) fn decoded(body: &[u8], most: usize) -> Result<Bytes, TransportError> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(body)
        .take(limit)
        .read_to_end(&mut plain);
    if let Err(error) = read {
        let message = "the response is declared as gzip but is not";
        let failed = TransportError::new(TransportErrorKind::Interrupted, message);
        return Err(failed.with_source(error));
    }
    if plain.len() > most {
        return Err(TransportError::too_large(most));
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn encoded(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_compressed_comes_back_up_to_a_size() {
        let plain = "[]".repeat(50_000).into_bytes();
        let body = encoded(&plain);
        assert!(body.len() < 1000);
        assert_eq!(decoded(&body, plain.len()).unwrap(), plain);
        let error = decoded(&body, plain.len() - 1).unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::TooLarge);
        for torn in [&body[..body.len() / 2], b"[]"] {
            let error = decoded(torn, plain.len()).unwrap_err();
            assert_eq!(error.kind(), TransportErrorKind::Interrupted);
        }
    }
}
