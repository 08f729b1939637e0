//! Errors of certificates and keys.

use std::io;
use std::path::PathBuf;

use rustls_pki_types::pem;

/// An error of the TLS configuration.
///
/// The message names the file and the problem. It never contains any part of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A text is not PEM.
    #[error("{origin} is not valid PEM")]
    Pem {
        /// The file, or a description of the text.
        origin: String,
        /// The parse error.
        source: pem::Error,
    },
    /// A text has no certificate.
    #[error("{origin} has no certificate; expected a section -----BEGIN CERTIFICATE-----")]
    NoCertificate {
        /// The file, or a description of the text.
        origin: String,
    },
    /// A text has no private key.
    #[error(
        "{origin} has no private key; expected a section -----BEGIN PRIVATE KEY-----, not encrypted"
    )]
    NoKey {
        /// The file, or a description of the text.
        origin: String,
    },
    /// A certificate cannot be parsed.
    #[error("the certificate in {origin} cannot be read: {reason}")]
    Certificate {
        /// The file, or a description of the text.
        origin: String,
        /// The reason.
        reason: String,
    },
    /// The provider does not support the private key.
    #[error("the private key in {origin} cannot be used")]
    Key {
        /// The file, or a description of the text.
        origin: String,
        /// The error of the provider.
        source: rustls::Error,
    },
    /// A private key belongs to another certificate.
    #[error("the private key in {key} does not belong to the certificate in {certificate}")]
    Mismatch {
        /// The origin of the certificate.
        certificate: String,
        /// The origin of the key.
        key: String,
    },
    /// A replacement certificate has expired.
    #[error("the certificate in {origin} for {names} has expired")]
    Expired {
        /// The file, or a description of the text.
        origin: String,
        /// The names of the certificate.
        names: String,
    },
    /// A certificate has no DNS name, and is not the first one.
    #[error("the certificate in {origin} is for no DNS name, so that no client would be shown it")]
    NoNames {
        /// The file, or a description of the text.
        origin: String,
    },
    /// No certificate was given.
    #[error("there is no certificate")]
    Empty,
    /// The provider supports no protocol version.
    #[error("the cryptography provider supports neither TLS 1.2 nor TLS 1.3")]
    Provider(#[source] rustls::Error),
    /// The certificate of a client authority cannot be parsed.
    #[error("the certificate of an authority for clients cannot be used")]
    ClientAuthority(#[source] rustls::Error),
    /// No certificate is one of an authority, so that every client would be rejected.
    #[error(
        "none of the certificates is one of an authority (`CA:TRUE`), so that no certificate of a client could be \
         accepted; use the certificate of the authority that issues those of clients"
    )]
    NoAuthority,
    /// The client authorities cannot be used.
    #[error("the authorities for clients cannot be used")]
    ClientAuthorities(#[source] rustls::server::VerifierBuilderError),
}
