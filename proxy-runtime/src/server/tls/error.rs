//! What may be wrong with certificates and keys.

use std::io;
use std::path::PathBuf;

use rustls_pki_types::pem;

/// TLS cannot be set up as asked.
///
/// The texts say which file it is and what is missing. No key, nor any part of one, is in them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A text is not PEM.
    #[error("{origin} is not valid PEM")]
    Pem {
        /// The file, or what the text was given as.
        origin: String,
        /// What is wrong.
        source: pem::Error,
    },
    /// There is no certificate where one is expected.
    #[error("{origin} has no certificate; expected a section -----BEGIN CERTIFICATE-----")]
    NoCertificate {
        /// The file, or what the text was given as.
        origin: String,
    },
    /// There is no private key where one is expected.
    #[error(
        "{origin} has no private key; expected a section -----BEGIN PRIVATE KEY-----, not encrypted"
    )]
    NoKey {
        /// The file, or what the text was given as.
        origin: String,
    },
    /// A certificate cannot be read.
    #[error("the certificate in {origin} cannot be read: {reason}")]
    Certificate {
        /// The file, or what the text was given as.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A private key is of a kind that the provider does not know.
    #[error("the private key in {origin} cannot be used")]
    Key {
        /// The file, or what the text was given as.
        origin: String,
        /// What the provider said.
        source: rustls::Error,
    },
    /// A private key belongs to another certificate.
    #[error("the private key in {key} does not belong to the certificate in {certificate}")]
    Mismatch {
        /// Where the certificate is from.
        certificate: String,
        /// Where the key is from.
        key: String,
    },
    /// A certificate has expired, and was to replace others.
    #[error("the certificate in {origin} for {names} has expired")]
    Expired {
        /// The file, or what the text was given as.
        origin: String,
        /// Its names.
        names: String,
    },
    /// A certificate is for no DNS name, and is not the first of several.
    #[error("the certificate in {origin} is for no DNS name, so that no client would be shown it")]
    NoNames {
        /// The file, or what the text was given as.
        origin: String,
    },
    /// There is no certificate at all.
    #[error("there is no certificate")]
    Empty,
    /// The provider supports no protocol version.
    #[error("the cryptography provider supports neither TLS 1.2 nor TLS 1.3")]
    Provider(#[source] rustls::Error),
    /// The certificate of an authority of clients cannot be read.
    #[error("the certificate of an authority for clients cannot be used")]
    ClientAuthority(#[source] rustls::Error),
    /// The authorities of clients cannot be used.
    #[error("the authorities for clients cannot be used")]
    ClientAuthorities(#[source] rustls::server::VerifierBuilderError),
}
