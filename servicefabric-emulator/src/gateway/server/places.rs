use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, timeout};

use super::activity::Activity;

/// The open connections of a server, whose number is limited.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    /// The time that a client may be idle while another one wants its place.
    patience: Duration,
    tasks: JoinSet<()>,
    /// The connections that were not aborted.
    open: HashMap<Id, (AbortHandle, Arc<Activity>)>,
}

impl Places {
    pub(super) fn new(limit: usize, patience: Duration) -> Self {
        Self {
            limit,
            patience,
            tasks: JoinSet::new(),
            open: HashMap::new(),
        }
    }

    /// Returns true if another connection may be opened.
    pub(super) fn has_room(&self) -> bool {
        self.tasks.len() < self.limit
    }

    /// Runs a connection, which takes a place.
    pub(super) fn take(
        &mut self,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), (task, activity));
    }

    /// Waits until a place is free again; forever if none is taken. Cancel safe.
    pub(super) async fn freed(&mut self) {
        let ended = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => error.id(),
            None => return std::future::pending().await,
        };
        self.open.remove(&ended);
    }

    /// Aborts the connection whose client has been idle longest, if that exceeds the patience and no other
    /// one is ending already. Returns the time of the next attempt.
    pub(super) fn make_room(&mut self) -> Instant {
        let now = Instant::now();
        if self.open.len() < self.limit {
            return now + self.patience;
        }
        let waits = self.open.iter();
        let waits = waits.filter_map(|(id, (_, activity))| Some((activity.waiting_since()?, *id)));
        let Some((since, id)) = waits.min_by_key(|(since, _)| *since) else {
            return now + self.patience;
        };
        let due = since + self.patience;
        if due > now {
            return due;
        }
        if let Some((task, _)) = self.open.remove(&id) {
            tracing::debug!("a connection whose client does nothing makes room for another");
            task.abort();
        }
        now + self.patience
    }

    /// Waits until all connections have ended, and aborts them after `limit`.
    pub(super) async fn drain(&mut self, limit: Duration) {
        let ended = timeout(limit, async {
            while self.tasks.join_next().await.is_some() {}
        });
        if ended.await.is_err() {
            tracing::warn!(left = self.tasks.len(), "connections are cut");
            self.tasks.shutdown().await;
        }
    }
}
