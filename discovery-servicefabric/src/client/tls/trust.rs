//! The servers that the client trusts.

use std::path::Path;
use std::sync::Arc;

use discovery_http::tls::{
    authorities_verifier, pem, rejecting_verifier, rule_verifier, store, system_verifier,
};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;

use super::verifier::{Accept, GatewayVerifier, Named};
use super::{Thumbprint, TlsError, read};

/// The servers that the client accepts as gateways of the cluster.
///
/// Certificates of clusters are often self-signed, or issued for a name of the cluster instead of the
/// host's. With every choice here, the server must prove in the handshake that it has the key of its
/// certificate.
#[derive(Clone, Debug)]
pub struct ServerTrust(Rule);

#[derive(Clone, Debug)]
enum Rule {
    /// Certificates for the endpoint's host, by issuers that the operating system trusts.
    System,
    /// Certificates for the endpoint's host, by these issuers.
    Authorities(Vec<CertificateDer<'static>>),
    /// One of these certificates.
    Thumbprints(Vec<Thumbprint>),
    /// Certificates for one of these names.
    Names(Vec<String>, Issuers),
    /// Any certificate.
    AnyServer,
    /// No certificate.
    NoServer,
}

/// The allowed issuers of a certificate that is accepted by name.
#[derive(Clone, Debug)]
enum Issuers {
    /// Issuers that the operating system trusts.
    System,
    /// The given authorities, and intermediate ones below them.
    Authorities(Vec<CertificateDer<'static>>),
    /// The certificates with these thumbprints as direct issuers, and those of them that are known in
    /// advance.
    Pinned(Vec<Thumbprint>, Vec<CertificateDer<'static>>),
}

impl Default for ServerTrust {
    /// Returns [`system`](Self::system).
    fn default() -> Self {
        Self::system()
    }
}

impl ServerTrust {
    /// Trusts certificates for the endpoint's host that the operating system trusts. The default.
    pub fn system() -> Self {
        Self(Rule::System)
    }

    /// Trusts certificates for the endpoint's host that one of these authorities has issued (PEM, one or
    /// more).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no certificate, or if the PEM is malformed.
    pub fn authorities_pem(pem: &[u8]) -> Result<Self, TlsError> {
        Ok(Self(Rule::Authorities(pem::certificates(pem)?)))
    }

    /// Trusts the authorities in a file, which is read once.
    ///
    /// # Errors
    ///
    /// The errors of [`authorities_pem`](Self::authorities_pem), and an error if the file cannot be read.
    pub fn authorities_file(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        Self::authorities_pem(&read(path.as_ref())?)
    }

    /// Trusts exactly these certificates, by their SHA-1 [thumbprints](Thumbprint), independent of their
    /// host and even if they have expired.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a thumbprint, or if the list is empty.
    pub fn thumbprints<T: AsRef<str>>(
        thumbprints: impl IntoIterator<Item = T>,
    ) -> Result<Self, TlsError> {
        Ok(Self(Rule::Thumbprints(parsed(thumbprints)?)))
    }

    /// Trusts certificates with one of these names, as subject's alternative name or as common name, for
    /// every host of the endpoint. Case is ignored, and a certificate for `*.b.example` has the name
    /// `a.b.example`. The operating system must trust their issuer (then only alternative names count)
    /// unless [`issued_by`](Self::issued_by) or [`authorities`](Self::authorities) is used.
    ///
    /// # Errors
    ///
    /// Returns an error if the list contains no name.
    pub fn names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Result<Self, TlsError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.iter().all(|name| name.trim().is_empty()) {
            return Err(TlsError::NothingTrusted);
        }
        let names = names.iter().map(|name| name.trim().to_owned()).collect();
        Ok(Self(Rule::Names(names, Issuers::System)))
    }

    /// Restricts [`names`](Self::names) to certificates that are, or are directly signed by, a certificate
    /// with one of these thumbprints. The server sends that certificate along, or it is among the
    /// [`authorities`](Self::authorities). Has no effect on other kinds of trust.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a thumbprint, or if the list is empty.
    pub fn issued_by<T: AsRef<str>>(
        mut self,
        thumbprints: impl IntoIterator<Item = T>,
    ) -> Result<Self, TlsError> {
        let pins = parsed(thumbprints)?;
        if let Rule::Names(_, issuers) = &mut self.0 {
            let known = match issuers {
                Issuers::System => Vec::new(),
                Issuers::Authorities(known) | Issuers::Pinned(_, known) => std::mem::take(known),
            };
            *issuers = Issuers::Pinned(pins, known);
        }
        Ok(self)
    }

    /// Sets the authorities (PEM, one or more) that may issue the certificates for [`names`](Self::names),
    /// in place of those that the operating system trusts. Has no effect on other kinds of trust.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no certificate, or if the PEM is malformed.
    pub fn authorities(mut self, pem: &[u8]) -> Result<Self, TlsError> {
        let authorities = pem::certificates(pem)?;
        if let Rule::Names(_, issuers) = &mut self.0 {
            match issuers {
                Issuers::Pinned(_, known) => *known = authorities,
                Issuers::System | Issuers::Authorities(_) => {
                    *issuers = Issuers::Authorities(authorities);
                }
            }
        }
        Ok(self)
    }

    /// Accepts any certificate, for trials only. An attacker between the client and the cluster can read
    /// and change everything, tokens included. A client built with it logs a warning.
    pub fn no_verify() -> Self {
        Self(Rule::AnyServer)
    }

    /// Accepts no certificate, for clients without TLS. Needs nothing from the operating system.
    pub(in crate::client) fn no_server() -> Self {
        Self(Rule::NoServer)
    }

    pub(super) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let accept = match &self.0 {
            Rule::Authorities(authorities) => {
                return Ok(authorities_verifier(authorities.clone(), provider)?);
            }
            Rule::System => return Ok(system_verifier(provider)?),
            Rule::Thumbprints(thumbprints) => Accept::Thumbprints(thumbprints.clone()),
            Rule::Names(names, issuers) => Accept::Names(
                names.clone(),
                match issuers {
                    Issuers::System => Named::System(system_verifier(provider)?),
                    Issuers::Authorities(authorities) => Named::Roots(store(authorities.clone())?),
                    Issuers::Pinned(pins, known) => Named::Pinned(pins.clone(), known.clone()),
                },
            ),
            Rule::AnyServer => {
                tracing::warn!(
                    target: "discovery::servicefabric",
                    "certificates of gateways are not verified: an attacker on the network can read and change all data"
                );
                Accept::AnyServer
            }
            Rule::NoServer => return Ok(rejecting_verifier(provider)),
        };
        Ok(rule_verifier(
            GatewayVerifier::new(accept, provider),
            provider,
        ))
    }
}

fn parsed<T: AsRef<str>>(
    thumbprints: impl IntoIterator<Item = T>,
) -> Result<Vec<Thumbprint>, TlsError> {
    let list: Vec<Thumbprint> = thumbprints
        .into_iter()
        .map(|text| text.as_ref().parse())
        .collect::<Result<_, _>>()?;
    if list.is_empty() {
        return Err(TlsError::NothingTrusted);
    }
    Ok(list)
}
