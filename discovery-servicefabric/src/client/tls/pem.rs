//! Certificates and keys from PEM.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// All certificates of a text, of which there must be one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(&error))?;
    if list.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    Ok(list)
}

/// The first private key of a text.
pub(super) fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        Error::NoItemsFound => TlsError::NoKey,
        error => wrong(&error),
    })
}

/// The error without what was read, which may be a key.
fn wrong(error: &Error) -> TlsError {
    TlsError::Pem(match error {
        Error::MissingSectionEnd { .. } => "a section has no end".to_owned(),
        Error::IllegalSectionStart { .. } => "a section has no proper beginning".to_owned(),
        Error::Base64Decode(_) => "a section is not base64".to_owned(),
        error => error.to_string(),
    })
}

/// A file of certificates or keys.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    const LONGEST: u64 = 4 * 1024 * 1024;
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST).read_to_end(&mut content))
        .map_err(|source| TlsError::Read {
            path: path.to_owned(),
            source,
        })?;
    Ok(content)
}
