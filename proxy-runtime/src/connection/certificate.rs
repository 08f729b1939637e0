//! Certificates that clients presented to the server.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// A certificate that a client presented, and that an authority of the listener has issued. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate(Arc<Presented>);

struct Presented {
    der: Box<[u8]>,
    /// The certificate in base64.
    value: HeaderValue,
    kept: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl PartialEq for Presented {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Presented {}

impl ClientCertificate {
    /// `None` if it is longer than a field's value may be.
    pub(crate) fn new(der: &[u8]) -> Option<Self> {
        Some(Self(Arc::new(Presented {
            der: der.into(),
            value: HeaderValue::try_from(STANDARD.encode(der)).ok()?,
            kept: OnceLock::new(),
        })))
    }

    /// The certificate in DER form.
    pub fn der(&self) -> &[u8] {
        &self.0.der
    }

    /// Returns the result of `read` for the DER form. It is kept as long as the connection, so that not every request
    /// reads the certificate. If results have several types, only the first type is kept.
    pub fn kept<T: Send + Sync + 'static>(&self, read: impl Fn(&[u8]) -> T) -> Arc<T> {
        let make = || -> Arc<dyn Any + Send + Sync> { Arc::new(read(self.der())) };
        let kept = Arc::clone(self.0.kept.get_or_init(make));
        // If another type was kept first, this one is read again each time.
        kept.downcast()
            .unwrap_or_else(|_| Arc::new(read(self.der())))
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_certificate_is_read_once_for_one_type() {
        let certificate = ClientCertificate::new(b"abc").unwrap();
        let reads = AtomicUsize::new(0);
        let length = |der: &[u8]| {
            reads.fetch_add(1, Relaxed);
            der.len()
        };
        for _ in 0..3 {
            assert_eq!(*certificate.clone().kept(length), 3);
        }
        assert_eq!(reads.load(Relaxed), 1);
        assert_eq!(*certificate.kept(|der| der.first().copied()), Some(b'a'));
        assert_eq!(*certificate.kept(length), 3);
        assert_eq!(certificate, ClientCertificate::new(b"abc").unwrap());
    }
}
