//! TLS of the server.

mod authorities;
mod certificate;
mod error;
mod handshake;
mod policy;
mod store;
#[cfg(test)]
mod tests;
mod validity;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;

pub use self::certificate::Certificate;
pub use self::error::TlsConfigError;
pub(crate) use self::handshake::Shaken;
use self::policy::Materials;
pub use self::policy::{ClientAuth, TlsPolicy};
pub(crate) use self::policy::{ConnectionPolicy, Policies};
pub use self::store::CertificateStore;

/// The TLS settings of a listener: TLS 1.2 and 1.3, with the certificates of a
/// [`CertificateStore`]. Cheap to clone; clones share the resumable sessions.
///
/// ALPN offers HTTP/2 and HTTP/1.1; a client that uses ALPN with neither is rejected. Early data
/// (0-RTT) is disabled, since it can be replayed.
#[derive(Clone)]
pub struct TlsServerConfig {
    provider: Arc<CryptoProvider>,
    policies: Arc<ArcSwap<Policies>>,
    ticketer: Option<Arc<dyn ProducesTickets>>,
    certificates: CertificateStore,
}

impl TlsServerConfig {
    /// Creates settings without client certificates, with the cryptography of `provider`. The
    /// process-wide provider is neither used nor set.
    ///
    /// # Errors
    ///
    /// Fails if the provider supports neither TLS 1.2 nor 1.3.
    pub fn new(
        provider: Arc<CryptoProvider>,
        certificates: CertificateStore,
    ) -> Result<Self, TlsConfigError> {
        Self::with_client_auth(provider, certificates, ClientAuth::Off)
    }

    /// Creates settings with client certificates.
    ///
    /// # Errors
    ///
    /// Fails if the provider supports neither TLS 1.2 nor 1.3, or if an authority's certificate is
    /// invalid, or if there is none.
    pub fn with_client_auth(
        provider: Arc<CryptoProvider>,
        certificates: CertificateStore,
        clients: ClientAuth,
    ) -> Result<Self, TlsConfigError> {
        let policy = TlsPolicy {
            client_auth: clients,
            ..TlsPolicy::default()
        };
        Self::with_policies(provider, certificates, policy, Vec::new())
    }

    /// Creates settings with a policy for each server name (SNI), and a default for all other
    /// clients. A name may begin with `*.`, which stands for one or more labels; the longest name
    /// wins.
    ///
    /// Requests whose `Host` has another [`ClientAuth`] than the server name of their connection
    /// get 421.
    ///
    /// # Errors
    ///
    /// As those of [`with_client_auth`](Self::with_client_auth).
    pub fn with_policies(
        provider: Arc<CryptoProvider>,
        certificates: CertificateStore,
        default: TlsPolicy,
        by_name: Vec<(String, TlsPolicy)>,
    ) -> Result<Self, TlsConfigError> {
        let materials = Materials {
            provider: &provider,
            certificates: &certificates,
            ticketer: None,
        };
        let policies = Policies::new(default, by_name, &materials)?;
        Ok(Self {
            policies: Arc::new(ArcSwap::from_pointee(policies)),
            ticketer: None,
            provider,
            certificates,
        })
    }

    /// Replaces all policies at once, such as when an authority is not trusted any more. Sessions of
    /// before are not resumed. Open connections are not affected.
    ///
    /// # Errors
    ///
    /// As those of [`with_client_auth`](Self::with_client_auth). The policies then stay as they are.
    pub fn replace_policies(
        &self,
        default: TlsPolicy,
        by_name: Vec<(String, TlsPolicy)>,
    ) -> Result<(), TlsConfigError> {
        let policies = Policies::new(default, by_name, &self.materials())?;
        // Handshakes in progress keep the policies that they have loaded.
        self.policies.store(Arc::new(policies));
        Ok(())
    }

    /// Lets clients resume sessions with tickets that `ticketer` encrypts, instead of sessions in
    /// memory: for many clients, or for several processes behind one name. Handshakes that ask for
    /// client certificates have no tickets, since a certificate is not verified again when a session
    /// is resumed.
    #[must_use]
    pub fn with_ticketer(mut self, ticketer: Arc<dyn ProducesTickets>) -> Self {
        self.ticketer = Some(ticketer);
        // The same policies were built before.
        if let Ok(policies) = self.policies.load().rebuilt(&self.materials()) {
            self.policies = Arc::new(ArcSwap::from_pointee(policies));
        }
        self
    }

    /// The certificates, which can be replaced while the server runs.
    pub fn certificates(&self) -> &CertificateStore {
        &self.certificates
    }

    /// The policies of now.
    pub(crate) fn policies(&self) -> Arc<Policies> {
        self.policies.load_full()
    }

    fn materials(&self) -> Materials<'_> {
        Materials {
            provider: &self.provider,
            certificates: &self.certificates,
            ticketer: self.ticketer.as_ref(),
        }
    }
}

impl fmt::Debug for TlsServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServerConfig")
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}
