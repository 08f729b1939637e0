//! The pipeline from sources to snapshots.
//!
//! Changes are served in two lanes. New endpoints of clusters that are already served go out within
//! [`PipelineOptions::endpoint_quiet`], since every request to a removed instance fails. All other changes
//! wait until the sources were quiet for [`PipelineOptions::config_quiet`], and at most
//! [`PipelineOptions::config_max`], since each change of a cluster makes every Envoy warm it again. New
//! settings of all clusters are rolled out to a twentieth of the services each second, and to at least
//! twenty, in the order of their names.
//!
//! A canary that loses its last instance keeps it until its share of the requests has been with its service
//! for a moment.

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

use crate::assemble::{Quarantined, ResourceOptions, Warning};
use crate::snapshot::Snapshot;
use crate::sources::{SourceStatus, Sources};
use crate::translate::TranslateOptions;

/// The time limit of the last write.
const STOP: Duration = Duration::from_secs(10);

/// The options of a pipeline.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PipelineOptions {
    /// The options of the translation.
    pub translate: TranslateOptions,
    /// The options of the assembly.
    pub assemble: ResourceOptions,
    /// The time for which changes of endpoints are gathered. Default: 10 ms.
    pub endpoint_quiet: Duration,
    /// The time without changes of the sources after which anything else is served. Default: 100 ms.
    pub config_quiet: Duration,
    /// The longest wait for that time. Default: 1 s.
    pub config_max: Duration,
    /// The file that keeps the last served snapshot, for a start while the sources are unavailable. `None`
    /// to keep none. Default: `None`.
    pub persist: Option<PathBuf>,
    /// The time limit for reading the sources, after which the kept snapshot is served and counts as
    /// [ready](Pipeline::readiness). It is served earlier only if a source fails. Default: 10 s.
    pub persist_after: Duration,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        use crate::translate::{CONSUL, REGISTRY, STATIC};
        Self {
            translate: TranslateOptions::default(),
            assemble: ResourceOptions::default().with_precedence([REGISTRY, CONSUL, STATIC]),
            endpoint_quiet: Duration::from_millis(10),
            config_quiet: Duration::from_millis(100),
            config_max: Duration::from_secs(1),
            persist: None,
            persist_after: Duration::from_secs(10),
        }
    }
}

/// The status of a pipeline.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PipelineStatus {
    /// The status of the sources.
    pub sources: Vec<SourceStatus>,
    /// The services that are not served as requested.
    pub quarantined: Vec<Quarantined>,
    /// Differences between served and requested resources, with the reasons.
    pub warnings: Vec<Warning>,
    /// True if the served snapshot was kept from an earlier run, since a source has not been read yet.
    pub is_kept: bool,
    /// The reason why the served snapshot cannot be written to disk.
    pub persist_failure: Option<Arc<str>>,
}

/// The pipeline from sources to snapshots. A task does the work and ends when this is dropped.
#[derive(Debug)]
pub struct Pipeline {
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    status: watch::Receiver<Arc<PipelineStatus>>,
    readiness: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Pipeline {
    /// Starts the pipeline.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
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

    /// The snapshots to serve. `None` until every source was read once, or the kept snapshot is served.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.snapshots.clone()
    }

    /// The readiness of the pipeline. It is true if there is a snapshot that was not only kept from an
    /// earlier run, or that has been served for [`PipelineOptions::persist_after`]. Once true, it stays
    /// true.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.readiness.clone()
    }

    /// Stops the pipeline after writing the last served snapshot to disk, which takes at most 10 s.
    /// Dropping a pipeline, or this future, stops it at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(STOP, &mut self.task).await.is_err() {
            tracing::warn!(target: driver::TARGET, "the served resources could not be stored in time");
        }
    }

    /// The status and its changes.
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
