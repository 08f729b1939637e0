//! What the admin API asks of a pipeline.

use std::sync::Arc;

use tokio::sync::watch;

use super::PipelineStatus;
use crate::admin::{Quarantine, QuarantineEntry};

impl Quarantine for watch::Receiver<Arc<PipelineStatus>> {
    fn entries(&self) -> Vec<QuarantineEntry> {
        let status = self.borrow();
        let entries = status
            .quarantined
            .iter()
            .map(|quarantined| QuarantineEntry {
                owner: quarantined.owner.to_string(),
                reasons: quarantined
                    .reasons
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                serves_last_good: quarantined.serves_last_good,
            });
        entries.collect()
    }

    fn waiting_for(&self) -> Vec<String> {
        let status = self.borrow();
        let waiting = status.sources.iter().filter(|source| !source.is_ready);
        waiting
            .map(|source| match &source.failure {
                Some(failure) => format!("{}: {failure}", source.name),
                None => source.name.to_string(),
            })
            .collect()
    }
}
