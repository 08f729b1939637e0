//! The files of a cluster's TLS settings.

use std::path::{Path, PathBuf};

/// The files with the certificates of a cluster's TLS connections. At least one is set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsFiles {
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    pub(crate) authorities: Option<PathBuf>,
}

impl TlsFiles {
    /// PEM files with the client certificate, its chain behind it, and with its key. They may be the same
    /// file.
    pub fn client_certificate(&self) -> Option<(&Path, &Path)> {
        let files = self.certificate.as_ref();
        files.map(|(chain, key)| (chain.as_path(), key.as_path()))
    }

    /// PEM file with the certificates of the authorities that certify the destinations. `None`: those that
    /// the program trusts.
    pub fn authorities(&self) -> Option<&Path> {
        self.authorities.as_deref()
    }
}
