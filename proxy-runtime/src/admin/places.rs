//! Connection slots of the admin listener. Health checks have slots of their own, so that other
//! clients cannot displace them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

/// Maximum of open connections whose last request was no health check.
const GENERAL: usize = 128;
/// Maximum of open connections whose last request was a health check.
const HEALTH: usize = 32;

/// The open connections of one listener.
#[derive(Debug, Default)]
pub(super) struct ConnectionSlots {
    open: Mutex<OpenConnections>,
    closed: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Grows with each connection and each request.
    clock: u64,
    connections: HashMap<u64, AdminConnection>,
}

#[derive(Debug)]
struct AdminConnection {
    /// The task that serves the connection; `None` until it is spawned.
    task: Option<AbortHandle>,
    is_health: bool,
    /// The clock at the accept, or at the end of the last request head.
    since: u64,
}

/// The slot of one connection. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    places: Arc<ConnectionSlots>,
    id: u64,
}

impl ConnectionSlots {
    /// `closed` counts connections that are closed to make room.
    pub(super) fn new(closed: Arc<AtomicU64>) -> Self {
        Self {
            open: Mutex::default(),
            closed,
        }
    }

    /// Takes a slot for an accepted connection.
    pub(super) fn enter(self: &Arc<Self>) -> ConnectionSlot {
        let mut open = self.lock();
        // A number of the event orders connections without a look at the time.
        open.clock += 1;
        let id = open.clock;
        let connection = AdminConnection {
            task: None,
            is_health: false,
            since: id,
        };
        open.connections.insert(id, connection);
        ConnectionSlot {
            places: Arc::clone(self),
            id,
        }
    }

    /// Records the task that serves a connection. Closes the connection that has been idle longest
    /// if there are too many.
    pub(super) fn served_by(&self, id: u64, task: AbortHandle) {
        let mut open = self.lock();
        // The connection may have ended already.
        if let Some(connection) = open.connections.get_mut(&id) {
            connection.task = Some(task);
        }
        let surplus = open.surplus(false);
        drop(open);
        // Aborting a task can drop its `ConnectionSlot`, which takes the lock.
        self.close(surplus);
    }

    fn close(&self, surplus: Option<AbortHandle>) {
        if let Some(task) = surplus {
            task.abort();
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock()
    }
}

impl OpenConnections {
    /// Removes and returns the connection of a kind that has been idle longest, if there are too
    /// many of that kind.
    fn surplus(&mut self, is_health: bool) -> Option<AbortHandle> {
        let most = if is_health { HEALTH } else { GENERAL };
        let alike = |connection: &AdminConnection| connection.is_health == is_health;
        let count = self.connections.values().filter(|c| alike(c)).count();
        if count <= most {
            return None;
        }
        // A connection whose task is not known yet cannot be closed.
        let known = self
            .connections
            .iter()
            .filter(|(_, c)| alike(c) && c.task.is_some());
        let (id, _) = known.min_by_key(|(_, connection)| connection.since)?;
        let id = *id;
        self.connections.remove(&id)?.task
    }
}

impl ConnectionSlot {
    /// The id of the connection, for [`ConnectionSlots::served_by`].
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Records a request of the connection, which may move it to the slots for health checks or
    /// back.
    pub(super) fn asked(&self, path: &str) {
        let is_health = is_health(path);
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

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.lock().connections.remove(&self.id);
    }
}

/// Returns true for the paths of health checks.
pub(super) fn is_health(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}
