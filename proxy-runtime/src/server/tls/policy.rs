//! The rules of handshakes, by server name.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use proxy_model::matching::RequestHost;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    NoClientAuth, ProducesTickets, ServerSessionMemoryCache, WebPkiClientVerifier,
};
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use rustls_pki_types::CertificateDer;

use super::authorities::roots;
use super::error::TlsConfigError;
use super::store::CertificateStore;
use crate::connection::Covers;

/// Maximum number of resumable sessions over all workers, of some kilobytes each.
const SESSIONS: usize = 4096;

/// The client certificates that a handshake requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAuth {
    /// Clients are not asked for certificates. The default.
    #[default]
    Off,
    /// Clients may present a certificate, which one of these authorities must have issued.
    Optional(Vec<CertificateDer<'static>>),
    /// Clients must present a certificate that one of these authorities issued.
    Required(Vec<CertificateDer<'static>>),
}

impl ClientAuth {
    /// Checks that there are certificates which clients could present.
    ///
    /// # Errors
    ///
    /// An authority cannot be parsed, or none of the certificates is one of an authority.
    pub fn check(&self) -> Result<(), TlsConfigError> {
        match self {
            Self::Off => Ok(()),
            Self::Optional(authorities) | Self::Required(authorities) => {
                roots(authorities).map(drop)
            }
        }
    }
}

/// The rules of handshakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsPolicy {
    /// The client certificates that are required. Default: none.
    pub client_auth: ClientAuth,
    /// True if TLS 1.2 is rejected. Default: false.
    pub requires_tls13: bool,
}

/// Policies by server name, ready for handshakes.
pub(crate) struct Policies {
    /// The first one is the default.
    list: Vec<Built>,
    exact: HashMap<String, usize>,
    /// Wildcard names without `*.`.
    wildcards: HashMap<String, usize>,
}

struct Built {
    policy: TlsPolicy,
    rustls: Arc<ServerConfig>,
}

/// The parts that policies are built with.
pub(super) struct Materials<'a> {
    pub(super) provider: &'a Arc<CryptoProvider>,
    pub(super) certificates: &'a CertificateStore,
    pub(super) ticketer: Option<&'a Arc<dyn ProducesTickets>>,
}

impl Policies {
    /// `by_name`: names in any case, which may begin with `*.`.
    pub(super) fn new(
        default: TlsPolicy,
        by_name: Vec<(String, TlsPolicy)>,
        materials: &Materials<'_>,
    ) -> Result<Self, TlsConfigError> {
        let mut policies = Self {
            list: vec![materials.build(default)?],
            exact: HashMap::new(),
            wildcards: HashMap::new(),
        };
        for (name, policy) in by_name {
            let index = policies.add(policy, materials)?;
            let name = name.to_ascii_lowercase();
            match name.strip_prefix("*.") {
                Some(parent) => policies.wildcards.insert(parent.to_owned(), index),
                None => policies.exact.insert(name, index),
            };
        }
        Ok(policies)
    }

    /// Equal policies are one, so that connections may be used for the names of either.
    fn add(
        &mut self,
        policy: TlsPolicy,
        materials: &Materials<'_>,
    ) -> Result<usize, TlsConfigError> {
        if let Some(index) = self.list.iter().position(|built| built.policy == policy) {
            return Ok(index);
        }
        self.list.push(materials.build(policy)?);
        Ok(self.list.len() - 1)
    }

    /// The policy of a name.
    fn index(&self, name: &str) -> usize {
        // An absolute name, which ends in a dot, means the same host.
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if let Some(index) = self.exact.get(&name) {
            return *index;
        }
        // From the longest suffix to the shortest, so that the first match wins.
        let mut rest = name.as_str();
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(index) = self.wildcards.get(parent) {
                return *index;
            }
            rest = parent;
        }
        0
    }

    /// Returns true if the name that a client sends makes no difference.
    pub(super) fn is_uniform(&self) -> bool {
        self.list.len() == 1
    }

    /// Returns true if clients are asked for certificates, by some name at least.
    #[cfg(feature = "admin")]
    pub(crate) fn ask_clients(&self) -> bool {
        let mut all = self.list.iter();
        all.any(|built| built.policy.client_auth != ClientAuth::Off)
    }

    /// Returns true if all clients must present certificates.
    #[cfg(feature = "admin")]
    pub(crate) fn require_clients(&self) -> bool {
        let mut all = self.list.iter();
        all.all(|built| matches!(built.policy.client_auth, ClientAuth::Required(_)))
    }

    /// The settings of a handshake with a client that sent this name.
    pub(super) fn rustls(&self, server_name: Option<&str>) -> Arc<ServerConfig> {
        let index = server_name.map_or(0, |name| self.index(name));
        Arc::clone(&self.list[index].rustls)
    }

    /// The policies with another ticketer, or new sessions.
    pub(super) fn rebuilt(&self, materials: &Materials<'_>) -> Result<Self, TlsConfigError> {
        let list = self.list.iter();
        let list = list.map(|built| materials.build(built.policy.clone()));
        Ok(Self {
            list: list.collect::<Result<_, _>>()?,
            exact: self.exact.clone(),
            wildcards: self.wildcards.clone(),
        })
    }
}

/// The policy of a connection, if the names of the listener have several policies.
pub(crate) struct ConnectionPolicy {
    policies: Arc<Policies>,
    index: usize,
}

impl ConnectionPolicy {
    /// The policy for a client that sent this name. `None` if all are the same.
    pub(crate) fn new(policies: Arc<Policies>, server_name: Option<&str>) -> Option<Self> {
        (!policies.is_uniform()).then(|| Self {
            index: server_name.map_or(0, |name| policies.index(name)),
            policies,
        })
    }

    /// Returns true if the handshake of the connection was at least as strict as that of this host. Otherwise a request
    /// would evade what its host requires (RFC 9110 section 7.4).
    fn covers(&self, authority: &str) -> bool {
        let host = RequestHost::parse(authority, true);
        let wanted = self.policies.index(host.name());
        let policy = |index: usize| &self.policies.list[index].policy;
        let (wanted, own) = (policy(wanted), policy(self.index));
        // A stricter version covers hosts that require less; client certificates have no such order.
        wanted.client_auth == own.client_auth && (own.requires_tls13 || !wanted.requires_tls13)
    }
}

impl ConnectionPolicy {
    /// The check of the host that a request names.
    pub(crate) fn into_check(self) -> Covers {
        Box::new(move |authority| str::from_utf8(authority).is_ok_and(|host| self.covers(host)))
    }
}

impl Materials<'_> {
    fn build(&self, policy: TlsPolicy) -> Result<Built, TlsConfigError> {
        let versions: &[&'static SupportedProtocolVersion] = match policy.requires_tls13 {
            true => &[&version::TLS13],
            false => &[&version::TLS13, &version::TLS12],
        };
        let verifier = self.verifier(&policy.client_auth)?;
        let asks_clients = policy.client_auth != ClientAuth::Off;
        let mut config = ServerConfig::builder_with_provider(Arc::clone(self.provider))
            .with_protocol_versions(versions)
            .map_err(TlsConfigError::Provider)?
            .with_client_cert_verifier(verifier)
            // The clone shares the table, so replacements apply to later handshakes.
            .with_cert_resolver(Arc::new(self.certificates.clone()));
        // In the order of the server's preference.
        config.alpn_protocols = vec![
            #[cfg(feature = "http2")]
            b"h2".to_vec(),
            b"http/1.1".to_vec(),
        ];
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        // A resumed session is not verified again. A ticket may be of a policy without certificates, or of
        // authorities that are not trusted any more; the sessions in memory are of this policy alone.
        if let Some(ticketer) = self.ticketer
            && !asks_clients
        {
            config.ticketer = Arc::clone(ticketer);
        }
        Ok(Built {
            policy,
            rustls: Arc::new(config),
        })
    }

    fn verifier(
        &self,
        clients: &ClientAuth,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
        let (authorities, is_required) = match clients {
            ClientAuth::Off => return Ok(Arc::new(NoClientAuth)),
            ClientAuth::Optional(authorities) => (authorities, false),
            ClientAuth::Required(authorities) => (authorities, true),
        };
        let roots = Arc::new(roots(authorities)?);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(self.provider));
        let verifier = match is_required {
            true => verifier,
            false => verifier.allow_unauthenticated(),
        };
        verifier.build().map_err(TlsConfigError::ClientAuthorities)
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies")
            .field("count", &self.list.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPolicy")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
