//! The labels of request metrics.

use http::{Method, StatusCode, Version};

/// Known methods. Others count as `_OTHER`, so that clients cannot create series.
const METHODS: [&str; 10] = [
    "_OTHER", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// Values of `network.protocol.version`.
const PROTOCOLS: [&str; 5] = ["", "1.0", "1.1", "2", "3"];

/// Method, HTTP version and status of one request, packed into one number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Labels(u32);

impl Labels {
    /// The label of unknown methods.
    pub(crate) const OTHER: &'static str = METHODS[0];

    /// The labels of a request with this response status.
    #[inline]
    pub(crate) fn new(method: &Method, version: Version, status: StatusCode) -> Self {
        // Indices in `METHODS`.
        let method: u32 = match *method {
            Method::GET => 1,
            Method::HEAD => 2,
            Method::POST => 3,
            Method::PUT => 4,
            Method::DELETE => 5,
            Method::CONNECT => 6,
            Method::OPTIONS => 7,
            Method::TRACE => 8,
            Method::PATCH => 9,
            _ => 0,
        };
        let protocol = match version {
            Version::HTTP_10 => 1,
            Version::HTTP_11 => 2,
            Version::HTTP_2 => 3,
            Version::HTTP_3 => 4,
            _ => 0,
        };
        // Both indices are below 16, a status is below 1,000.
        Self(method << 16 | protocol << 12 | u32::from(status.as_u16()))
    }

    /// Returns the labels with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self(self.0 & !0xfff | u32::from(status.as_u16()))
    }

    /// The packed number, which is never 0.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    /// Unpacks a number from [`bits`](Self::bits).
    #[cfg(any(feature = "metrics", test))]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// `http.request.method`.
    pub(crate) fn method(self) -> &'static str {
        METHODS
            .get((self.0 >> 16) as usize)
            .copied()
            .unwrap_or(METHODS[0])
    }

    /// `network.protocol.version`; empty if unknown.
    pub(crate) fn protocol(self) -> &'static str {
        PROTOCOLS
            .get((self.0 >> 12 & 0xf) as usize)
            .copied()
            .unwrap_or(PROTOCOLS[0])
    }

    /// The status, if it is one of HTTP.
    pub(crate) fn status_code(self) -> Option<StatusCode> {
        StatusCode::from_u16(self.status()).ok()
    }

    /// `http.response.status_code`.
    pub(crate) fn status(self) -> u16 {
        (self.0 & 0xfff) as u16
    }
}

impl std::fmt::Debug for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.method(), self.protocol(), self.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_survive_packing() {
        for method in METHODS {
            let labels = Labels::new(
                &Method::from_bytes(method.as_bytes()).unwrap(),
                Version::HTTP_2,
                StatusCode::from_u16(999).unwrap(),
            );
            assert_eq!(
                (labels.method(), labels.protocol(), labels.status()),
                (method, "2", 999)
            );
            assert_ne!(labels.bits(), 0);
        }
    }

    #[test]
    fn unknown_methods_are_one() {
        let labels = |method: &str| {
            Labels::new(
                &Method::from_bytes(method.as_bytes()).unwrap(),
                Version::HTTP_11,
                StatusCode::OK,
            )
        };
        assert_eq!(labels("BREW"), labels("PROPFIND"));
        assert_eq!(labels("BREW").method(), "_OTHER");
        assert_eq!(
            labels("get").method(),
            "_OTHER",
            "methods are case-sensitive"
        );
    }
}
