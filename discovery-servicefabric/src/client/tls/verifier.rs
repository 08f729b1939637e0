//! Certificates that are known by thumbprint or by name.

use std::fmt;
use std::sync::Arc;

use discovery_core::text::shortened;
use discovery_http::tls::{CertificateRule, Presented};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError, RootCertStore};
use webpki::EndEntityCert;

use super::Thumbprint;
use super::common_name::common_names;

/// The certificates that are accepted.
#[derive(Debug)]
pub(super) enum Accept {
    Thumbprints(Vec<Thumbprint>),
    Names(Vec<String>, Named),
    AnyServer,
}

/// The allowed issuers of a certificate that is accepted by name.
#[derive(Debug)]
pub(super) enum Named {
    System(Arc<dyn ServerCertVerifier>),
    Roots(RootCertStore),
    Pinned(Vec<Thumbprint>, Vec<CertificateDer<'static>>),
}

/// Accepts certificates by rules that hosts have no part in. That the server has the key is verified as always.
pub(super) struct GatewayVerifier {
    accept: Accept,
    provider: Arc<CryptoProvider>,
}

impl GatewayVerifier {
    pub(super) fn new(accept: Accept, provider: &Arc<CryptoProvider>) -> Self {
        Self {
            accept,
            provider: Arc::clone(provider),
        }
    }

    /// A certificate with one of the names, from an issuer that is trusted.
    fn verify_named(
        &self,
        names: &[String],
        issuers: &Named,
        presented: &Presented<'_>,
    ) -> Result<(), Error> {
        let certificate = presented.certificate;
        let checked_name = || {
            let has_one = names.iter().any(|name| has_name(certificate, name));
            has_one
                .then_some(())
                .ok_or_else(|| rejected(CertificateRejection::Names(named(certificate))))
        };
        match issuers {
            Named::System(verifier) => ask_system(&**verifier, names, presented),
            Named::Roots(roots) => {
                checked_name()?;
                self.verify_issuer(presented, roots, presented.intermediates)
            }
            Named::Pinned(pins, known) => {
                checked_name()?;
                if pins.contains(&Thumbprint::of(certificate)) {
                    return Ok(());
                }
                let mut roots = RootCertStore::empty();
                let pinned = known
                    .iter()
                    .chain(presented.intermediates)
                    .filter(|issuer| pins.contains(&Thumbprint::of(issuer)));
                roots.add_parsable_certificates(pinned.map(|issuer| issuer.clone().into_owned()));
                // Without intermediates: the issuer is pinned, and no authority below it.
                self.verify_issuer(presented, &roots, &[])
            }
        }
    }

    fn verify_issuer(
        &self,
        presented: &Presented<'_>,
        roots: &RootCertStore,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<(), Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(presented.certificate)?,
            roots,
            intermediates,
            presented.now,
            self.provider.signature_verification_algorithms.all,
        )
    }
}

/// Verifies with the operating system, once for each name, since it checks issuer and name together.
fn ask_system(
    verifier: &dyn ServerCertVerifier,
    names: &[String],
    presented: &Presented<'_>,
) -> Result<(), Error> {
    let mut result = Err(Error::InvalidCertificate(CertificateError::NotValidForName));
    for name in names {
        let Ok(name) = ServerName::try_from(name.as_str()) else {
            continue;
        };
        result = verifier
            .verify_server_cert(
                presented.certificate,
                presented.intermediates,
                &name,
                &[],
                presented.now,
            )
            .map(drop);
        if result.is_ok() {
            break;
        }
    }
    result
}

impl CertificateRule for GatewayVerifier {
    fn check(&self, presented: &Presented<'_>) -> Result<(), Error> {
        match &self.accept {
            Accept::AnyServer => Ok(()),
            Accept::Thumbprints(thumbprints) => {
                let shown = Thumbprint::of(presented.certificate);
                match thumbprints.contains(&shown) {
                    true => Ok(()),
                    false => Err(rejected(CertificateRejection::Thumbprint(shown))),
                }
            }
            Accept::Names(names, issuers) => self.verify_named(names, issuers, presented),
        }
    }
}

impl fmt::Debug for GatewayVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayVerifier")
            .field("accept", &self.accept)
            .finish_non_exhaustive()
    }
}

/// Returns true if a certificate is for a name: as alternative name, or as common name of its subject.
fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let alternative = || {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let name = ServerName::try_from(name).ok()?;
        verify_server_name(&parsed, &name).ok()
    };
    alternative().is_some()
        || subject_names(certificate)
            .iter()
            .any(|common| common.eq_ignore_ascii_case(name))
}

fn subject_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    EndEntityCert::try_from(certificate)
        .map_or_else(|_| Vec::new(), |parsed| common_names(parsed.subject()))
}

/// The names of a certificate, for a message.
fn named(certificate: &CertificateDer<'_>) -> String {
    let mut names = subject_names(certificate);
    if let Ok(parsed) = EndEntityCert::try_from(certificate) {
        names.extend(parsed.valid_dns_names().map(str::to_owned));
    }
    names.dedup();
    shortened(&names.join(", "), 200)
}

/// The reason why a certificate is rejected.
#[derive(Debug, thiserror::Error)]
enum CertificateRejection {
    #[error("the certificate's thumbprint is {0}, which is not in the list")]
    Thumbprint(Thumbprint),
    #[error("the certificate is for {0}, which is not in the list")]
    Names(String),
}

fn rejected(rejection: CertificateRejection) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(rejection))))
}
