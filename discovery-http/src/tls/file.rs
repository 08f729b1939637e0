//! Certificates and keys from PEM files that may be renewed while a program runs.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::pem::{self, PemError};

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
#[non_exhaustive]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The reason. It contains nothing of the file.
    pub message: String,
}

impl FileError {
    fn new(path: &Path, message: &dyn fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }
}

/// All certificates in a file, up to 4 MiB.
///
/// # Errors
///
/// The file cannot be read, has no certificate, or is not well formed.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    read(path, pem::certificates)
}

/// The first private key in a file, up to 4 MiB.
///
/// # Errors
///
/// The file cannot be read, has no private key, or is not well formed.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    read(path, pem::key)
}

/// The content of each file at present, by which a change is noticed; `None` for one that cannot be read.
pub fn contents<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<Option<Vec<u8>>> {
    paths.into_iter().map(|path| pem::read(path).ok()).collect()
}

fn read<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T, PemError>) -> Result<T, FileError> {
    let content = pem::read(path).map_err(|error| FileError::new(path, &error))?;
    parse(&content).map_err(|error| FileError::new(path, &error))
}
