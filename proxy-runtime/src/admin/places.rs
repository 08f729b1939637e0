//! The places that the connections of the admin listener have: who asks for health keeps one, whoever else comes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

/// Connections at a time that have not asked for health.
const GENERAL: usize = 128;
/// Connections at a time that last asked for health.
const HEALTH: usize = 32;

/// The open connections of one listener.
#[derive(Debug, Default)]
pub(super) struct Places {
    open: Mutex<Open>,
    closed: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Open {
    /// Grows with each connection and each request.
    clock: u64,
    connections: HashMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// None until it is known.
    task: Option<AbortHandle>,
    is_health: bool,
    /// The clock when it was accepted, or when its last request was complete.
    since: u64,
}

/// The place of one connection; dropped, it is free.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
}

impl Places {
    /// `closed` counts connections that are closed to make room.
    pub(super) fn new(closed: Arc<AtomicU64>) -> Self {
        Self {
            open: Mutex::default(),
            closed,
        }
    }

    /// The place of a connection that was accepted.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let mut open = self.lock();
        open.clock += 1;
        let id = open.clock;
        let connection = Connection {
            task: None,
            is_health: false,
            since: id,
        };
        open.connections.insert(id, connection);
        Place {
            places: Arc::clone(self),
            id,
        }
    }

    /// Says which task serves a connection, and closes the one that has been silent for the longest time if there are too many.
    pub(super) fn served_by(&self, id: u64, task: AbortHandle) {
        let mut open = self.lock();
        // It may have ended already.
        if let Some(connection) = open.connections.get_mut(&id) {
            connection.task = Some(task);
        }
        let surplus = open.surplus(false);
        drop(open);
        self.close(surplus);
    }

    fn close(&self, surplus: Option<AbortHandle>) {
        if let Some(task) = surplus {
            task.abort();
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl Open {
    /// Takes out the connection that has been silent for the longest time, if there are too many of its kind.
    fn surplus(&mut self, is_health: bool) -> Option<AbortHandle> {
        let most = if is_health { HEALTH } else { GENERAL };
        let alike = |connection: &Connection| connection.is_health == is_health;
        let count = self.connections.values().filter(|c| alike(c)).count();
        if count <= most {
            return None;
        }
        let known = self
            .connections
            .iter()
            .filter(|(_, c)| alike(c) && c.task.is_some());
        let (id, _) = known.min_by_key(|(_, connection)| connection.since)?;
        let id = *id;
        self.connections.remove(&id)?.task
    }
}

impl Place {
    /// What its task is told by.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// A request of the connection is complete.
    pub(super) fn asked(&self, path: &str) {
        let is_health = matches!(path, "/healthz" | "/readyz");
        let mut open = self.places.lock();
        open.clock += 1;
        let now = open.clock;
        if let Some(connection) = open.connections.get_mut(&self.id) {
            connection.since = now;
            connection.is_health = is_health;
        }
        let surplus = open.surplus(is_health);
        drop(open);
        self.places.close(surplus);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().connections.remove(&self.id);
    }
}
