//! Certificates of listeners and of the admin page, authorities for their clients, and the follower of their files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use program_kit::{Failure, with_causes};
use proxy_model::{Problem, Problems, Snapshot, pointer_to};
use proxy_runtime::Proxy;
use proxy_runtime::server::{
    Certificate, CertificateStore, ClientAuth, TlsConfigError, TlsPolicy, TlsServerConfig,
};
use proxy_runtime::upstream::{TlsClient, UpstreamOptions};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::faults::Faults;
use crate::regular_file;
use crate::settings::{Clients, Handshakes, Settings, Tls};

/// The interval at which certificate files are checked. Renewed certificates arrive weeks before the old ones
/// expire, so there is no hurry.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The certificates of one listener or of the admin page, and their files.
pub(crate) struct Followed {
    user: TlsUser,
    files: Tls,
    provider: Arc<CryptoProvider>,
    config: TlsServerConfig,
    seen: Vec<Option<Vec<u8>>>,
    seen_authorities: Vec<Option<Vec<u8>>>,
}

/// A section with `Tls`.
#[derive(Clone, Debug)]
pub(crate) enum TlsUser {
    /// The listener of this name.
    Listener(String),
    /// The admin page.
    Admin,
}

impl TlsUser {
    /// Returns the pointer to the settings.
    fn pointer(&self) -> String {
        match self {
            Self::Listener(name) => pointer_to("/Listeners", name) + "/Tls",
            Self::Admin => "/Admin/Tls".to_owned(),
        }
    }
}

impl fmt::Display for TlsUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener(name) => write!(f, "the listener `{name}`"),
            Self::Admin => f.write_str("the admin page"),
        }
    }
}

/// The policy of all other names, and those by name.
type Policies = (TlsPolicy, Vec<(String, TlsPolicy)>);

/// A file with authorities that cannot be used.
#[derive(Debug, thiserror::Error)]
enum AuthoritiesError {
    #[error("cannot read {file}")]
    Unreadable {
        file: String,
        source: std::io::Error,
    },
    #[error("{file} is not valid PEM: {reason}")]
    Invalid { file: String, reason: String },
    #[error("{file} has no certificate; expected a section -----BEGIN CERTIFICATE-----")]
    Empty { file: String },
    #[error(transparent)]
    Unusable(#[from] TlsConfigError),
}

/// Reads the certificates of a listener or of the admin page.
pub(crate) fn load(
    user: TlsUser,
    tls: &Tls,
    provider: &Arc<CryptoProvider>,
) -> Result<(TlsServerConfig, Followed), Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::new(format!("{user} cannot speak TLS: {}", with_causes(error)))
    };
    // The contents are noted before they are used, so that a change in between is found at the next look.
    let (seen, seen_authorities) = (contents(tls), authorities(tls));
    let certificates = read(tls, provider).map_err(|error| failed(&error))?;
    let store = CertificateStore::new(certificates).map_err(|error| failed(&error))?;
    let (default, by_name) = policies(tls).map_err(|error| failed(&error))?;
    let config = TlsServerConfig::with_policies(Arc::clone(provider), store, default, by_name)
        .map_err(|error| failed(&error))?;
    let followed = Followed {
        user,
        files: tls.clone(),
        provider: Arc::clone(provider),
        config: config.clone(),
        seen,
        seen_authorities,
    };
    Ok((config, followed))
}

/// Returns the problems of certificates on this machine now: errors of those that cannot be used, and
/// warnings of those that have expired, which are used all the same.
pub(crate) fn unusable(settings: &Settings) -> Problems {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let listeners = settings.listeners.iter().map(|listener| {
        let user = TlsUser::Listener(listener.name.clone());
        (user, listener.tls.as_ref())
    });
    let admin = settings.admin.iter();
    let admin = admin.map(|admin| (TlsUser::Admin, admin.tls.as_ref()));
    let with_tls = listeners
        .chain(admin)
        .filter_map(|(user, tls)| Some((user.pointer(), tls?)));
    let mut problems = Problems::new();
    for (place, tls) in with_tls {
        unusable_pairs(
            tls,
            &format!("{place}/Certificates"),
            &provider,
            &mut problems,
        );
        for (below, path) in tls.authorities() {
            if let Err(error) = usable_authorities(path) {
                let message = format!(
                    "the authorities for clients cannot be used on this machine: {}",
                    with_causes(&error)
                );
                let pointer = format!("{place}{below}");
                problems.push(Problem::error(pointer, "unusable_certificate", message));
            }
        }
    }
    problems
}

/// Adds the problems of certificates with their keys, and of all of them together.
fn unusable_pairs(tls: &Tls, place: &str, provider: &CryptoProvider, problems: &mut Problems) {
    let mut usable = Vec::new();
    let unusable = |pointer: &str, error: &TlsConfigError| {
        let error = with_causes(error);
        let message = format!("the certificate cannot be used on this machine: {error}");
        Problem::error(pointer, "unusable_certificate", message)
    };
    for (i, pair) in tls.certificates.iter().enumerate() {
        let read = Certificate::from_pem_files(&pair.certificate_file, &pair.key_file, provider);
        let pointer = format!("{place}/{i}");
        let certificate = match read {
            Ok(certificate) => certificate,
            Err(error) => {
                problems.push(unusable(&pointer, &error));
                continue;
            }
        };
        if has_expired(&certificate) {
            let message = format!(
                "the certificate in {} has expired; clients will reject it",
                pair.certificate_file.display()
            );
            problems.push(Problem::warning(pointer, "expired_certificate", message));
        }
        usable.push(certificate);
    }
    // A listener without certificates is an error of its own.
    if !usable.is_empty()
        && usable.len() == tls.certificates.len()
        && let Err(error) = CertificateStore::new(usable)
    {
        problems.push(unusable(place, &error));
    }
}

/// Returns problems of certificates for destinations that could not be used on this machine now.
pub(crate) fn unusable_for_destinations(snapshot: Snapshot) -> Problems {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    // The same code reads the files here and in `run`. Only the files of clusters matter.
    let mut options = UpstreamOptions::default();
    options.tls = TlsClient::new(provider).ok();
    let builder = Proxy::builder().upstream(options);
    let built = builder.snapshot(Arc::new(snapshot)).build();
    built.map_or_else(|_| Problems::new(), |(proxy, _)| proxy.observed_problems())
}

/// Checks that the authorities of a file can be used.
fn usable_authorities(path: &Path) -> Result<(), AuthoritiesError> {
    let authorities = ClientAuth::Required(read_authorities(path)?);
    Ok(authorities.check()?)
}

fn has_expired(certificate: &Certificate) -> bool {
    let expires = certificate.expires_at();
    expires.is_some_and(|expires| expires < SystemTime::now())
}

/// Checks the files every few seconds and installs new certificates. Mismatched pairs change nothing.
pub(crate) async fn follow(mut all: Vec<Followed>, faults: Faults) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // Certificates are small, and reading them off the runtime keeps a slow disk from delaying everything
        // else.
        let faults = faults.clone();
        let looked = tokio::task::spawn_blocking(move || {
            all.iter_mut().for_each(|followed| followed.look(&faults));
            all
        });
        match looked.await {
            Ok(back) => all = back,
            Err(_) => return,
        }
    }
}

impl Followed {
    fn look(&mut self, faults: &Faults) {
        self.look_at_certificates(faults);
        self.look_at_authorities(faults);
    }

    fn look_at_certificates(&mut self, faults: &Faults) {
        let now = contents(&self.files);
        if now == self.seen {
            return;
        }
        let replaced = read(&self.files, &self.provider)
            .and_then(|certificates| self.config.certificates().replace(certificates));
        let (done, kept) = (
            "the certificates were replaced",
            "the new certificates cannot be used, the old ones stay",
        );
        self.report("Certificates", replaced, done, kept, faults);
        // Files that cannot be used are reported once and not at every look.
        self.seen = now;
    }

    fn look_at_authorities(&mut self, faults: &Faults) {
        let now = authorities(&self.files);
        if now == self.seen_authorities {
            return;
        }
        let replaced = policies(&self.files).and_then(|(default, by_name)| {
            let replaced = self.config.replace_policies(default, by_name);
            replaced.map_err(AuthoritiesError::from)
        });
        let (done, kept) = (
            "the authorities for clients were replaced",
            "the new authorities for clients cannot be used, the old ones stay",
        );
        self.report("ClientCaFile", replaced, done, kept, faults);
        self.seen_authorities = now;
    }

    /// Reports whether new files of `key` are used, in the log and to the admin API.
    fn report(
        &self,
        key: &str,
        replaced: Result<(), impl std::error::Error>,
        done: &str,
        kept: &str,
        faults: &Faults,
    ) {
        let pointer = format!("{}/{key}", self.user.pointer());
        let listener = match &self.user {
            TlsUser::Listener(name) => name.as_str(),
            TlsUser::Admin => "Admin",
        };
        match replaced {
            Ok(()) => {
                tracing::info!(target: "proxy::tls", listener, "{done}");
                faults.clear(&pointer);
            }
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(target: "proxy::tls", listener, error, "{kept}");
                let message = format!("{kept}: {error}");
                let problem = Problem::warning(pointer.as_str(), "unusable_certificate", message);
                faults.set(&pointer, problem);
            }
        }
    }
}

fn read(tls: &Tls, provider: &CryptoProvider) -> Result<Vec<Certificate>, TlsConfigError> {
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
    files.map(|path| regular_file::read(path).ok()).collect()
}

/// Returns the contents of the files with authorities for clients.
fn authorities(tls: &Tls) -> Vec<Option<Vec<u8>>> {
    let files = tls.authorities();
    files
        .map(|(_, path)| regular_file::read(path).ok())
        .collect()
}

fn policies(tls: &Tls) -> Result<Policies, AuthoritiesError> {
    let by_name = tls.by_name.iter();
    let by_name = by_name.map(|(name, rules)| Ok((name.clone(), policy(rules)?)));
    Ok((
        policy(&tls.default)?,
        by_name.collect::<Result<_, AuthoritiesError>>()?,
    ))
}

fn policy(rules: &Handshakes) -> Result<TlsPolicy, AuthoritiesError> {
    let mut policy = TlsPolicy::default();
    policy.requires_tls13 = rules.requires_tls13;
    policy.client_auth = match &rules.clients {
        Clients::Off => ClientAuth::Off,
        Clients::Optional(path) => ClientAuth::Optional(read_authorities(path)?),
        Clients::Required(path) => ClientAuth::Required(read_authorities(path)?),
    };
    Ok(policy)
}

fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, AuthoritiesError> {
    let file = path.display().to_string();
    let text = match regular_file::read(path) {
        Ok(text) => text,
        Err(source) => return Err(AuthoritiesError::Unreadable { file, source }),
    };
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(AuthoritiesError::Empty { file }),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(AuthoritiesError::Invalid {
            file,
            reason: error.to_string(),
        }),
    }
}
