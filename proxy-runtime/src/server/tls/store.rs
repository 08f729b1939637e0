//! The selection of a certificate for a client.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::error::TlsConfigError;
use crate::observe::targets;

/// The certificates of a server, which can be replaced while it runs. Cheap to clone; clones are
/// the same store.
///
/// The server name of a client (SNI) selects the certificate: one with exactly this name, else one
/// with a wildcard for it, where `*` stands for one label, else the first one. A client without SNI
/// gets the first one. If two certificates have the same name, the first wins.
#[derive(Clone)]
pub struct CertificateStore {
    table: Arc<ArcSwap<CertificateTable>>,
}

impl CertificateStore {
    /// Creates a store of these certificates.
    ///
    /// An expired certificate is used with a warning: a program that does not start is worse for
    /// users than a warning in their client.
    ///
    /// # Errors
    ///
    /// Fails if there is no certificate, or one that no client would ever get.
    pub fn new(
        certificates: impl IntoIterator<Item = Certificate>,
    ) -> Result<Self, TlsConfigError> {
        let certificates: Vec<_> = certificates.into_iter().collect();
        let now = SystemTime::now();
        for certificate in &certificates {
            if certificate.is_expired(now) {
                tracing::warn!(
                    target: targets::TLS,
                    certificate = certificate.origin(),
                    names = ?certificate.names(),
                    "the certificate has expired; clients will reject it"
                );
            }
        }
        Ok(Self {
            table: Arc::new(ArcSwap::from_pointee(CertificateTable::new(certificates)?)),
        })
    }

    /// Replaces all certificates at once. Handshakes in progress keep the old ones; open
    /// connections are not affected.
    ///
    /// # Errors
    ///
    /// Fails if there is no certificate, or one that no client would ever get, or an expired one.
    /// The store then keeps its certificates.
    pub fn replace(
        &self,
        certificates: impl IntoIterator<Item = Certificate>,
    ) -> Result<(), TlsConfigError> {
        let certificates: Vec<_> = certificates.into_iter().collect();
        let now = SystemTime::now();
        // The certificates in use are better than expired ones.
        if let Some(expired) = certificates
            .iter()
            .find(|certificate| certificate.is_expired(now))
        {
            return Err(TlsConfigError::Expired {
                origin: expired.origin().to_owned(),
                names: expired.names().join(", "),
            });
        }
        self.table
            .store(Arc::new(CertificateTable::new(certificates)?));
        Ok(())
    }

    /// The certificates in order.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.table.load().certificates.clone()
    }
}

impl fmt::Debug for CertificateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(&self.table.load().certificates)
            .finish()
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.table.load().find(hello.server_name()))
    }
}

/// An immutable, non-empty set of certificates.
struct CertificateTable {
    certificates: Vec<Certificate>,
    exact: HashMap<String, usize>,
    /// Wildcard names without `*.`.
    wildcards: HashMap<String, usize>,
}

impl CertificateTable {
    fn new(certificates: Vec<Certificate>) -> Result<Self, TlsConfigError> {
        if certificates.is_empty() {
            return Err(TlsConfigError::Empty);
        }
        let mut exact = HashMap::new();
        let mut wildcards = HashMap::new();
        for (index, certificate) in certificates.iter().enumerate() {
            // Only the first certificate, the default one, may have no names.
            if certificate.names().is_empty() && index > 0 {
                return Err(TlsConfigError::NoNames {
                    origin: certificate.origin().to_owned(),
                });
            }
            for name in certificate.names() {
                let (names, name) = match name.strip_prefix("*.") {
                    Some(parent) => (&mut wildcards, parent),
                    None => (&mut exact, name.as_str()),
                };
                // The first certificate of a name wins.
                names.entry(name.to_owned()).or_insert(index);
            }
        }
        Ok(Self {
            certificates,
            exact,
            wildcards,
        })
    }

    /// `name` must be in lower case, which rustls guarantees.
    fn find(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let index = name.and_then(|name| {
            // An absolute name ends in a dot.
            let name = name.strip_suffix('.').unwrap_or(name);
            let by_wildcard = || self.wildcards.get(name.split_once('.')?.1);
            self.exact.get(name).or_else(by_wildcard)
        });
        let certificate = &self.certificates[index.copied().unwrap_or(0)];
        certificate.certified_key().clone()
    }
}
