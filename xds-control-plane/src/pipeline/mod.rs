//! From sources to snapshots, live.
//!
//! Changes are served in two lanes. New endpoints of clusters that are served already go out within
//! [`PipelineOptions::endpoint_quiet`], since every request to an instance that is gone fails. Everything else waits until
//! the sources were quiet for [`PipelineOptions::config_quiet`], and at most [`PipelineOptions::config_max`], since each
//! change of a cluster makes every Envoy warm it anew. New settings of all clusters are taken by a twentieth of the services
//! each second, and by twenty at least, in the order of their names.
//!
//! A canary that loses its last instance keeps it until its share of the requests has been with its service for a moment.

mod driver;
mod kept;
mod metrics;
mod quarantine;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::assemble::{AssembleOptions, Quarantined, Warning};
use crate::snapshot::Snapshot;
use crate::sources::{SourceStatus, Sources};
use crate::translate::TranslateOptions;

/// How long the last write may take.
const STOP: Duration = Duration::from_secs(10);

/// How a pipeline works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PipelineOptions {
    /// How services are translated.
    pub translate: TranslateOptions,
    /// How resources are assembled.
    pub assemble: AssembleOptions,
    /// How long news of endpoints are gathered. 10 ms.
    pub endpoint_quiet: Duration,
    /// How long the sources have to be quiet before anything else is served. 100 ms.
    pub config_quiet: Duration,
    /// How long that may take at most. 1 s.
    pub config_max: Duration,
    /// Where what was served last is kept, to begin with when the sources are away. `None`: nowhere.
    pub persist: Option<PathBuf>,
    /// How long the sources may take to be read before what was kept is served, and counts as [ready](Pipeline::readiness).
    /// Sooner it is served only when one of them fails. 10 s.
    pub persist_after: Duration,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        use crate::translate::{CONSUL, REGISTRY, STATIC};
        Self {
            translate: TranslateOptions::default(),
            assemble: AssembleOptions::default().with_precedence([REGISTRY, CONSUL, STATIC]),
            endpoint_quiet: Duration::from_millis(10),
            config_quiet: Duration::from_millis(100),
            config_max: Duration::from_secs(1),
            persist: None,
            persist_after: Duration::from_secs(10),
        }
    }
}

/// How a pipeline is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PipelineStatus {
    /// How the sources are.
    pub sources: Vec<SourceStatus>,
    /// The services that are not served as they want to be.
    pub quarantined: Vec<Quarantined>,
    /// What is served otherwise than was asked for, and why.
    pub warnings: Vec<Warning>,
    /// Whether what is served was kept from the last time, since a source has not been read yet.
    pub is_kept: bool,
    /// Why what is served cannot be kept for the next time.
    pub persist_failure: Option<Arc<str>>,
}

/// From sources to snapshots. The work is done by a task, which ends when this is dropped.
#[derive(Debug)]
pub struct Pipeline {
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    status: watch::Receiver<Arc<PipelineStatus>>,
    readiness: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Pipeline {
    /// Begins to work.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(sources: Sources, options: PipelineOptions) -> Self {
        let (snapshot, snapshots) = watch::channel(None);
        let (status_sender, status) = watch::channel(Arc::default());
        let (ready, readiness) = watch::channel(false);
        let (stop, stopped) = watch::channel(false);
        let shown = driver::Shown {
            snapshot,
            status: status_sender,
            ready,
        };
        let task = tokio::spawn(driver::drive(sources, options, shown, stopped));
        Self {
            snapshots,
            status,
            readiness,
            stop,
            task,
        }
    }

    /// What is to be served; `None` until every source was read once, or what was kept has been.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.snapshots.clone()
    }

    /// Whether what is to be served may be relied on: there is something, and it is not only what was kept from the last time,
    /// or that has been so for [`PipelineOptions::persist_after`]. Once it is so it stays so.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.readiness.clone()
    }

    /// Ends, after what was served last has been kept for the next time. That takes 10 s at most. Dropping a pipeline, or this
    /// future, ends it at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(STOP, &mut self.task).await.is_err() {
            tracing::warn!(target: driver::TARGET, "what is served could not be kept in time");
        }
    }

    /// How it is, and when that changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<PipelineStatus>> {
        self.status.clone()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.task.abort();
    }
}
