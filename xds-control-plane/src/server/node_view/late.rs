use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::snapshot::{ResourceSet, ResourceType, Snapshot};

/// States that are waited for at a time. Of more, the newest takes the place of the one before.
const STATES: usize = 16;

/// Listeners and routes for clients that do not report when their clusters are warm. Streams of one type
/// have no order between types, and a route to a missing cluster is answered with 503. Resources that refer
/// to a new cluster therefore follow it after a delay.
#[derive(Debug)]
pub(super) struct Late {
    lead: Duration,
    shown: Option<Referring>,
    coming: VecDeque<(Instant, Referring)>,
}

/// The resources that refer to clusters.
#[derive(Debug, Clone, Default)]
pub(super) struct Referring {
    pub(super) listeners: Arc<ResourceSet>,
    pub(super) routes: Arc<ResourceSet>,
}

impl Late {
    /// Creates a state in which new clusters are `lead` ahead.
    pub(super) fn new(lead: Duration) -> Self {
        Self {
            lead,
            shown: None,
            coming: VecDeque::new(),
        }
    }

    /// Applies a new state, which contains new clusters if `adds` is set.
    pub(super) fn publish(&mut self, snapshot: &Snapshot, adds: bool, now: Instant) {
        let referring = Referring {
            listeners: Arc::clone(snapshot.resources(ResourceType::Listener)),
            routes: Arc::clone(snapshot.resources(ResourceType::Route)),
        };
        let last = self.coming.back().map(|(due, _)| *due);
        let due = match last {
            _ if adds => now + self.lead,
            Some(due) => due,
            None => now,
        };
        if self.coming.len() == STATES {
            self.coming.pop_back();
        }
        self.coming.push_back((due, referring));
        if self.shown.is_none() {
            // No client has routes that could be ahead.
            self.shown = self.coming.pop_back().map(|(_, referring)| referring);
        }
        self.expire(now);
    }

    /// Shows the states that have waited long enough. Returns true if there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let mut is_new = false;
        while self.coming.front().is_some_and(|(due, _)| *due <= now) {
            self.shown = self.coming.pop_front().map(|(_, referring)| referring);
            is_new = true;
        }
        is_new
    }

    /// Returns the time at which to call [`Late::expire`].
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.coming.front().map(|(due, _)| *due)
    }

    /// The current resources. `None` before the first state.
    pub(super) fn shown(&self) -> Option<&Referring> {
        self.shown.as_ref()
    }
}
