//! Certificates and keys in PEM files.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub(crate) struct PemError {
    pub(crate) path: PathBuf,
    pub(crate) message: String,
}

impl PemError {
    fn new(path: &Path, message: &dyn fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }
}

/// The certificates in a file, of which there is one at least.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| PemError::new(path, &error))?
        .collect();
    match read {
        Ok(found) if found.is_empty() => Err(PemError::new(path, &"there is no certificate in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(PemError::new(path, &error)),
    }
}

/// The certificates in a file, as those that others are trusted by.
pub(crate) fn roots(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| PemError::new(path, &error))?;
    }
    Ok(roots)
}

/// The key in a file.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| PemError::new(path, &error))
}

/// What files hold, to notice a change by. `None`: one cannot be read at the moment.
pub(crate) fn contents<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<Option<Vec<u8>>> {
    paths
        .into_iter()
        .map(|path| std::fs::read(path).ok())
        .collect()
}
