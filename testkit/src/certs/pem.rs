use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Identity;

/// A certificate and its key in files, which are removed on drop.
#[derive(Debug)]
pub struct PemFiles {
    directory: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl PemFiles {
    /// The directory of both files, for related files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Path of `cert.pem`.
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Path of `key.pem`.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// Adds the certificate of an authority as `ca.pem`, and returns its path.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be written.
    #[track_caller]
    pub fn add_authority(&self, authority: &super::CertificateAuthority) -> PathBuf {
        let path = self.directory().join("ca.pem");
        if let Err(error) = std::fs::write(&path, authority.certificate_pem()) {
            panic!("cannot write {}: {error}", path.display());
        }
        path
    }
}

#[track_caller]
pub(super) fn write(identity: &Identity) -> PemFiles {
    let written = || -> io::Result<PemFiles> {
        let directory = tempfile::Builder::new().prefix("testkit-").tempdir()?;
        let certificate = directory.path().join("cert.pem");
        let key = directory.path().join("key.pem");
        std::fs::write(&certificate, identity.certificate_pem())?;
        std::fs::write(&key, identity.key_pem())?;
        Ok(PemFiles {
            directory,
            certificate,
            key,
        })
    };
    match written() {
        Ok(files) => files,
        Err(error) => panic!("cannot write PEM files: {error}"),
    }
}
