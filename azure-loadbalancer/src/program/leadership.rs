//! Leadership: the right to write, which one of several programs has.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use azure_loadbalancer::arm::ReqwestTransport;
use azure_loadbalancer::sources::kubernetes::{Lease, LeaseOptions};
use program_kit::Failure;

use super::cli::Apply;
use super::health::Health;
use super::inputs;

/// The file with the name of a pod's namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The wait between two attempts to take a lock, and between two checks of its file.
const RETRY: Duration = Duration::from_secs(2);

/// The right to write.
pub(super) struct Leadership {
    kind: LeaseKind,
    health: Arc<Health>,
}

enum LeaseKind {
    /// No other program runs.
    Alone,
    /// The holder of a lease of an API server leads.
    Lease(Box<Lease<ReqwestTransport>>),
    /// The holder of a file lock leads. The system releases the lock when the program ends.
    Lock { path: PathBuf, held: Option<File> },
}

impl Leadership {
    pub(super) fn new(options: &Apply, health: Arc<Health>) -> Result<Self, Failure> {
        let kind = match (&options.leader_lock, options.leader_elect) {
            (Some(path), _) => LeaseKind::Lock {
                path: path.clone(),
                held: None,
            },
            (None, true) => LeaseKind::Lease(Box::new(lease(options)?)),
            (None, false) => LeaseKind::Alone,
        };
        Ok(Self { kind, health })
    }

    /// Waits until this program leads.
    pub(super) async fn acquire(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            LeaseKind::Alone => return Ok(()),
            LeaseKind::Lease(lease) => {
                let last = Some(lease.holder()).filter(|holder| *holder != lease.identity());
                self.health.stand_by(last.unwrap_or_default());
                let health = Arc::clone(&self.health);
                lease
                    .acquire(move |holder| {
                        tracing::warn!(holder, "standing by: another program holds the lease");
                        health.stand_by(holder);
                    })
                    .await;
            }
            LeaseKind::Lock { path, held } => {
                self.health.stand_by("");
                *held = Some(locked(path, &self.health).await?);
            }
        }
        tracing::warn!("leading: this program writes");
        self.health.lead();
        Ok(())
    }

    /// Returns when this program no longer leads, with the reason.
    pub(super) async fn keep(&mut self) -> String {
        match &mut self.kind {
            LeaseKind::Lease(lease) => {
                let lost = lease.keep().await;
                self.health.stand_by(lease.holder());
                lost.to_string()
            }
            LeaseKind::Lock { path, held } => {
                while held.as_ref().is_some_and(|file| is_at(path, file)) {
                    tokio::time::sleep(RETRY).await;
                }
                // Another program finds no lock at the path, and takes it.
                *held = None;
                self.health.stand_by("");
                format!("{} was removed or made again", path.display())
            }
            LeaseKind::Alone => std::future::pending().await,
        }
    }

    /// Returns true if another program may take over the leadership.
    pub(super) fn can_be_lost(&self) -> bool {
        !matches!(self.kind, LeaseKind::Alone)
    }

    /// Gives up the leadership.
    pub(super) async fn release(&mut self) {
        match &mut self.kind {
            LeaseKind::Alone => {}
            LeaseKind::Lease(lease) => lease.release().await,
            LeaseKind::Lock { held, .. } => *held = None,
        }
    }
}

fn lease(options: &Apply) -> Result<Lease<ReqwestTransport>, Failure> {
    let client = inputs::kubernetes(&options.inputs)?;
    let client = client.ok_or_else(|| Failure::new("--leader-elect needs --kubernetes"))?;
    let mut wanted =
        LeaseOptions::default().with_duration(Duration::from_secs(options.lease_duration));
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    wanted.identity = format!("{host}_{}", wanted.identity)
        .trim_start_matches('_')
        .to_owned();
    match options.lease.as_deref().map(|lease| lease.split_once('/')) {
        Some(Some((namespace, name)))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            namespace.clone_into(&mut wanted.namespace);
            name.clone_into(&mut wanted.name);
        }
        Some(_) => return Err(Failure::new("--lease is not NAMESPACE/NAME")),
        None => {
            if let Ok(namespace) = std::fs::read_to_string(NAMESPACE_FILE) {
                namespace.trim().clone_into(&mut wanted.namespace);
            }
        }
    }
    Ok(Lease::new(client, wanted))
}

/// Takes the lock of a file, once no other program has it.
async fn locked(path: &std::path::Path, health: &Health) -> Result<File, Failure> {
    let unusable = |error: std::io::Error| {
        Failure::new(format!("{} cannot be locked: {error}", path.display()))
    };
    let mut is_told = false;
    loop {
        // The file is only opened, so it may serve another purpose. It may be replaced between attempts.
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(unusable)?;
        let is_taken = match file.try_lock() {
            Ok(()) if is_at(path, &file) => return Ok(file),
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        };
        if is_taken && !is_told {
            tracing::warn!(file = %path.display(), "standing by: another program has the lock");
            health.stand_by("another program on this machine");
            is_told = true;
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Returns true if a path still leads to an open file, as far as known.
#[cfg(unix)]
fn is_at(path: &std::path::Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(held)) => (there.dev(), there.ino()) == (held.dev(), held.ino()),
        (Err(error), _) => error.kind() != std::io::ErrorKind::NotFound,
        (Ok(_), Err(_)) => true,
    }
}

/// Returns true: only Unix can identify a file.
#[cfg(not(unix))]
fn is_at(_: &std::path::Path, _: &File) -> bool {
    true
}
