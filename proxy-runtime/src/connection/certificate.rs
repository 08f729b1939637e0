//! Certificates that clients presented to the server.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// A certificate that a client presented, and that an authority of the listener has issued. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate(Arc<Presented>);

#[derive(PartialEq, Eq)]
struct Presented {
    der: Box<[u8]>,
    /// The certificate in base64.
    value: HeaderValue,
}

impl ClientCertificate {
    /// `None` if it is longer than a field's value may be.
    pub(crate) fn new(der: &[u8]) -> Option<Self> {
        Some(Self(Arc::new(Presented {
            der: der.into(),
            value: HeaderValue::try_from(STANDARD.encode(der)).ok()?,
        })))
    }

    /// The certificate in DER form.
    pub fn der(&self) -> &[u8] {
        &self.0.der
    }

    /// The certificate as the value of a field: base64 of its DER form.
    pub(crate) fn value(&self) -> HeaderValue {
        self.0.value.clone()
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("bytes", &self.0.der.len())
            .finish_non_exhaustive()
    }
}
