//! Certificates of listeners, and the follower of their files.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use program_kit::{Failure, with_causes};
use proxy_model::{Problem, Problems, pointer_to};
use proxy_runtime::server::{Certificate, CertificateStore, TlsServerConfig};
use rustls::crypto::CryptoProvider;

use crate::settings::{Listener, Tls};

/// The interval at which certificate files are checked. Renewed certificates arrive weeks before the old ones
/// expire, so there is no hurry.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The certificates of one listener, and their files.
pub(crate) struct Followed {
    listener: String,
    files: Tls,
    provider: Arc<CryptoProvider>,
    store: CertificateStore,
    seen: Vec<Option<Vec<u8>>>,
}

/// Reads a listener's certificates.
pub(crate) fn load(
    listener: &str,
    tls: &Tls,
    provider: &Arc<CryptoProvider>,
) -> Result<(TlsServerConfig, Followed), Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::new(format!(
            "the listener `{listener}` cannot speak TLS: {}",
            with_causes(error)
        ))
    };
    // The contents are noted before they are used, so that a change in between is found at the next look.
    let seen = contents(tls);
    let certificates = read(tls, provider).map_err(|error| failed(&error))?;
    let store = CertificateStore::new(certificates).map_err(|error| failed(&error))?;
    let config = TlsServerConfig::new(Arc::clone(provider), store.clone())
        .map_err(|error| failed(&error))?;
    let followed = Followed {
        listener: listener.to_owned(),
        files: tls.clone(),
        provider: Arc::clone(provider),
        store,
        seen,
    };
    Ok((config, followed))
}

/// Returns the problems of certificates on this machine now: errors of those that cannot be used, and
/// warnings of those that have expired, which are used all the same.
pub(crate) fn unusable(listeners: &[Listener]) -> Problems {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let with_tls = listeners
        .iter()
        .filter_map(|listener| Some((listener, listener.tls.as_ref()?)));
    let mut problems = Problems::new();
    for (listener, tls) in with_tls {
        let pointer = pointer_to("/Listeners", &listener.name) + "/Tls/Certificates";
        for (i, pair) in tls.certificates.iter().enumerate() {
            let read =
                Certificate::from_pem_files(&pair.certificate_file, &pair.key_file, &provider);
            let pointer = format!("{pointer}/{i}");
            match read {
                Ok(certificate) if has_expired(&certificate) => {
                    let message = format!(
                        "the certificate in {} has expired; clients will reject it",
                        pair.certificate_file.display()
                    );
                    problems.push(Problem::warning(pointer, "expired_certificate", message));
                }
                Ok(_) => {}
                Err(error) => {
                    let message = format!(
                        "the certificate cannot be used on this machine: {}",
                        with_causes(&error)
                    );
                    problems.push(Problem::error(pointer, "unusable_certificate", message));
                }
            }
        }
    }
    problems
}

fn has_expired(certificate: &Certificate) -> bool {
    let expires = certificate.expires_at();
    expires.is_some_and(|expires| expires < SystemTime::now())
}

/// Checks the files every few seconds and installs new certificates. Mismatched pairs change nothing.
pub(crate) async fn follow(mut all: Vec<Followed>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // Certificates are small, and reading them off the runtime keeps a slow disk from delaying everything
        // else.
        let looked = tokio::task::spawn_blocking(move || {
            all.iter_mut().for_each(Followed::look);
            all
        });
        match looked.await {
            Ok(back) => all = back,
            Err(_) => return,
        }
    }
}

impl Followed {
    fn look(&mut self) {
        let now = contents(&self.files);
        if now == self.seen {
            return;
        }
        let replaced = read(&self.files, &self.provider)
            .and_then(|certificates| self.store.replace(certificates));
        match replaced {
            Ok(_) => {
                tracing::info!(target: "proxy::tls", listener = self.listener, "the certificates were replaced");
            }
            Err(error) => tracing::warn!(
                target: "proxy::tls",
                listener = self.listener,
                error = with_causes(&error),
                "the new certificates cannot be used, the old ones stay"
            ),
        }
        // Files that cannot be used are reported once and not at every look.
        self.seen = now;
    }
}

fn read(
    tls: &Tls,
    provider: &CryptoProvider,
) -> Result<Vec<Certificate>, proxy_runtime::server::TlsConfigError> {
    tls.certificates
        .iter()
        .map(|pair| Certificate::from_pem_files(&pair.certificate_file, &pair.key_file, provider))
        .collect()
}

/// Returns the contents of the files, for detecting changes. `None` for a file that cannot be read at the
/// moment.
fn contents(tls: &Tls) -> Vec<Option<Vec<u8>>> {
    let pairs = tls.certificates.iter();
    let files = pairs.flat_map(|pair| [&pair.certificate_file, &pair.key_file]);
    files.map(|path| std::fs::read(path).ok()).collect()
}
