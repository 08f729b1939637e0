//! Certificates and keys from PEM.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// All certificates of a file, of which there must be one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match list {
        Ok(list) if list.is_empty() => Err(wrong(path, "there is no certificate")),
        Ok(list) => Ok(list),
        Err(error) => Err(malformed(path, &error)),
    }
}

/// The first private key of a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| match error {
        Error::NoItemsFound => wrong(
            path,
            "there is no private key; an encrypted one must be decrypted first",
        ),
        error => malformed(path, &error),
    })
}

/// The error without what was read, which may be a key.
fn malformed(path: &Path, error: &Error) -> TlsError {
    match error {
        Error::MissingSectionEnd { .. } => wrong(path, "a section of the PEM has no end"),
        Error::IllegalSectionStart { .. } => wrong(path, "a section of the PEM has no beginning"),
        Error::Base64Decode(_) => wrong(path, "a section of the PEM is not base64"),
        error => wrong(path, &error.to_string()),
    }
}

fn wrong(path: &Path, problem: &str) -> TlsError {
    TlsError::Pem {
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
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
