//! Certificates and keys from PEM.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The longest file that is read, in bytes.
const LONGEST: u64 = 4 * 1024 * 1024;

/// The error of reading PEM. Its text contains nothing of the PEM, which may be a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// There is no certificate.
    #[error("there is no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// There is no private key.
    #[error(
        "there is no private key in PEM form (`-----BEGIN PRIVATE KEY-----`); an encrypted one must be decrypted first"
    )]
    NoKey,
    /// The text is not PEM.
    #[error("the PEM is not well formed: {0}")]
    Malformed(String),
}

/// All certificates of a text.
///
/// # Errors
///
/// There is none, or the text is not well formed.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let list: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| malformed(&error))?;
    match list.is_empty() {
        true => Err(PemError::NoCertificate),
        false => Ok(list),
    }
}

/// The first private key of a text: PKCS #8, PKCS #1 or SEC 1, not encrypted.
///
/// # Errors
///
/// There is none, or the text is not well formed.
pub fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        Error::NoItemsFound => PemError::NoKey,
        error => malformed(&error),
    })
}

/// The content of a file of certificates or keys, up to 4 MiB.
///
/// # Errors
///
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut content)?;
    Ok(content)
}

fn malformed(error: &Error) -> PemError {
    PemError::Malformed(match error {
        Error::MissingSectionEnd { .. } => "a section has no end".to_owned(),
        Error::IllegalSectionStart { .. } => "a section has no proper beginning".to_owned(),
        Error::Base64Decode(_) => "a section is not base64".to_owned(),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_errors_do_not_show_the_text() {
        assert_eq!(certificates(b""), Err(PemError::NoCertificate));
        assert_eq!(key(b"nothing").unwrap_err(), PemError::NoKey);
        let torn = b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n";
        let error = key(torn).unwrap_err().to_string();
        assert!(
            error.contains("no end") && !error.contains("c2Vj"),
            "{error}"
        );
        let error = certificates(b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n");
        assert!(error.unwrap_err().to_string().contains("not base64"));
    }
}
