//! Certificates of clusters, from files that may change.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use proxy_model::compiled::TlsFiles;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, Error, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::tls::TlsVariant;
use crate::observe::targets;

/// The credentials in use, by their files. A cluster keeps its own alive.
#[derive(Debug, Default)]
pub(super) struct CredentialsTable(Mutex<HashMap<Arc<TlsFiles>, Weak<Credentials>>>);

/// The certificates of one set of files.
///
/// Files that cannot be used at first make all connections fail. If they become unusable later, the last
/// good certificates stay: keys and certificates are rarely replaced at the same moment.
pub(crate) struct Credentials {
    files: Arc<TlsFiles>,
    state: Mutex<State>,
}

struct State {
    contents: Contents,
    /// Names the certificates for the life of the process.
    version: u64,
    loaded: Result<Arc<Loaded>, String>,
    /// The reason why the files cannot be used now.
    fault: Option<String>,
}

/// The bytes of each file, for detecting changes. `None`: the file cannot be read.
type Contents = Vec<Option<Vec<u8>>>;

/// Certificates that were read, and the configurations made from them.
pub(super) struct Loaded {
    /// The client certificate. `None`: none is presented.
    pub(super) client: Option<Arc<dyn ResolvesClientCert>>,
    /// `None`: the trust of the program.
    pub(super) verifier: Option<Arc<dyn ServerCertVerifier>>,
    pub(super) configs: Mutex<HashMap<TlsVariant, Arc<ClientConfig>>>,
}

impl CredentialsTable {
    /// Returns the credentials of `files`. Blocks while it reads files that no cluster has used so far.
    pub(super) fn of(
        &self,
        files: &Arc<TlsFiles>,
        provider: &Arc<CryptoProvider>,
    ) -> Arc<Credentials> {
        if let Some(known) = self.known(files) {
            return known;
        }
        // Read without the lock, so that connections of other clusters do not wait for a disk.
        let read = Arc::new(Credentials::read(files, provider));
        let mut table = self.0.lock();
        // Clusters that are gone have left entries without an owner.
        table.retain(|_, credentials| credentials.strong_count() > 0);
        // Another thread may have been faster.
        if let Some(known) = table.get(files).and_then(Weak::upgrade) {
            return known;
        }
        table.insert(Arc::clone(files), Arc::downgrade(&read));
        read
    }

    /// Returns the credentials of `files`, if a cluster uses them.
    pub(super) fn known(&self, files: &TlsFiles) -> Option<Arc<Credentials>> {
        self.0.lock().get(files).and_then(Weak::upgrade)
    }

    /// Returns all credentials in use.
    pub(super) fn all(&self) -> Vec<Arc<Credentials>> {
        self.0.lock().values().filter_map(Weak::upgrade).collect()
    }
}

impl Credentials {
    fn read(files: &Arc<TlsFiles>, provider: &Arc<CryptoProvider>) -> Self {
        let contents = contents(files);
        let loaded = load(files, provider);
        if let Err(error) = &loaded {
            tracing::warn!(
                target: targets::TLS,
                error,
                "the certificates for destinations cannot be used, no connection is opened with them"
            );
        }
        Self {
            files: Arc::clone(files),
            state: Mutex::new(State {
                contents,
                version: next_version(),
                fault: loaded.as_ref().err().cloned(),
                loaded: loaded.map(Arc::new),
            }),
        }
    }

    /// Names the certificates: it changes with them.
    pub(crate) fn version(&self) -> u64 {
        self.state.lock().version
    }

    /// The reason why the files cannot be used, and whether earlier certificates are used meanwhile.
    pub(crate) fn fault(&self) -> Option<(String, bool)> {
        let state = self.state.lock();
        let fault = state.fault.clone()?;
        Some((fault, state.loaded.is_ok()))
    }

    /// Returns the certificates.
    ///
    /// # Errors
    ///
    /// The files could never be used.
    pub(super) fn loaded(&self) -> Result<Arc<Loaded>, Error> {
        let state = self.state.lock();
        let loaded = state.loaded.as_ref();
        loaded
            .cloned()
            .map_err(|error| Error::General(error.clone()))
    }

    /// Reads the files again if they have changed. Blocks while reading.
    pub(super) fn refresh(&self, provider: &Arc<CryptoProvider>) {
        let contents = contents(&self.files);
        // By content, since a replaced file may have an older time.
        if self.state.lock().contents == contents {
            return;
        }
        let loaded = load(&self.files, provider);
        let mut state = self.state.lock();
        // Files that cannot be used are reported once, and not each time.
        state.contents = contents;
        match loaded {
            Ok(loaded) => {
                state.loaded = Ok(Arc::new(loaded));
                state.version = next_version();
                state.fault = None;
            }
            Err(error) => {
                tracing::warn!(
                    target: targets::TLS,
                    error,
                    keeps_earlier = state.loaded.is_ok(),
                    "the changed certificates for destinations cannot be used"
                );
                state.fault = Some(error.clone());
                if state.loaded.is_err() {
                    state.loaded = Err(error);
                }
            }
        }
    }
}

fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn contents(files: &TlsFiles) -> Contents {
    let certificate = files.client_certificate();
    let own = certificate
        .into_iter()
        .flat_map(|(chain, key)| [chain, key]);
    let all = own.chain(files.authorities());
    all.map(|path| fs::read(path).ok()).collect()
}

/// The message names the file, and nothing of a key.
fn load(files: &TlsFiles, provider: &Arc<CryptoProvider>) -> Result<Loaded, String> {
    let client = match files.client_certificate() {
        Some((chain, key)) => Some(client_certificate(chain, key, provider)?),
        None => None,
    };
    let verifier = match files.authorities() {
        Some(path) => Some(verifier(path, provider)?),
        None => None,
    };
    Ok(Loaded {
        client,
        verifier,
        configs: Mutex::default(),
    })
}

fn client_certificate(
    chain_path: &Path,
    key_path: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<dyn ResolvesClientCert>, String> {
    let chain = certificates(chain_path)?;
    let key = PrivateKeyDer::from_pem_slice(&read(key_path)?).map_err(|error| {
        let key = key_path.display();
        format!("{key} has no private key in a PEM section that is not encrypted: {error}")
    })?;
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        let (chain, key) = (chain_path.display(), key_path.display());
        format!("the certificate in {chain} cannot be used with the key in {key}: {error}")
    })?;
    Ok(Arc::new(SingleCertAndKey::from(certified)))
}

fn verifier(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let failed = |error: &dyn fmt::Display| {
        format!(
            "{} has a certificate that is not one of an authority: {error}",
            path.display()
        )
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(path)? {
        roots.add(authority).map_err(|error| failed(&error))?;
    }
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| failed(&error))?;
    Ok(verifier)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(format!(
            "{} has no certificate in a PEM section",
            path.display()
        )),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("{} is not PEM: {error}", path.display())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// The certificates that a cluster of one generation is served with.
#[derive(Debug)]
pub(crate) struct OwnCredentials {
    credentials: Arc<Credentials>,
    /// The version at the build of the generation. Later versions make a new generation.
    version: u64,
}

impl OwnCredentials {
    pub(crate) fn new(credentials: Arc<Credentials>) -> Self {
        Self {
            version: credentials.version(),
            credentials,
        }
    }

    /// Returns true if connections with either configuration may serve requests that need the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.version == other.version
    }

    /// Returns true if there are later certificates.
    pub(crate) fn is_outdated(&self) -> bool {
        self.credentials.version() != self.version
    }

    /// The reason why the files cannot be used, and whether earlier certificates are used meanwhile.
    pub(crate) fn fault(&self) -> Option<(String, bool)> {
        self.credentials.fault()
    }
}
