//! Tasks that end with their owner.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// The owner of a group of tasks: aborts them when dropped.
pub(crate) struct Tasks {
    spawner: Spawner,
}

/// Adds tasks to a group without owning it, so that a task may hold it and add others.
#[derive(Clone)]
pub(crate) struct Spawner {
    group: Arc<Mutex<Group>>,
}

#[derive(Default)]
struct Group {
    tasks: JoinSet<()>,
    closed: bool,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        let group = Arc::default();
        Self {
            spawner: Spawner { group },
        }
    }

    pub(crate) fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// Spawns on the current runtime.
    #[track_caller]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawner.spawn(task);
    }

    /// Aborts all tasks and waits until the last has been dropped, and its sockets with it.
    pub(crate) async fn stop(self) {
        let mut tasks = self.spawner.close();
        tasks.shutdown().await;
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        drop(self.spawner.close());
    }
}

impl Spawner {
    /// Spawns on the current runtime; does nothing once the owner is gone.
    #[track_caller]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut group = self.lock();
        if group.closed {
            return;
        }
        // Ended tasks are let go here, so that a long-lived group does not grow with each connection.
        while group.tasks.try_join_next().is_some() {}
        group.tasks.spawn(task);
    }

    fn close(&self) -> JoinSet<()> {
        let mut group = self.lock();
        group.closed = true;
        std::mem::take(&mut group.tasks)
    }

    fn lock(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets hyper run HTTP/2 streams in the group: they then end with the owner too.
impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(async move {
            future.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::Tasks;
    use crate::time::guarded;

    #[tokio::test]
    async fn dropping_the_owner_drops_what_its_tasks_hold() {
        let (held, dropped) = oneshot::channel::<()>();
        let tasks = Tasks::new();
        let inner = tasks.spawner();
        tasks.spawn(async move {
            // A task that adds a task which holds the spawner: a cycle that abort has to break.
            let again = inner.clone();
            inner.spawn(async move {
                let _keep = (held, again);
                std::future::pending::<()>().await;
            });
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        drop(tasks);
        guarded("the inner task's end", dropped).await.unwrap_err();
    }

    #[tokio::test]
    async fn stop_waits_for_the_end() {
        let (held, mut dropped) = oneshot::channel::<()>();
        let tasks = Tasks::new();
        let late = tasks.spawner();
        tasks.spawn(async move {
            let _keep = held;
            std::future::pending::<()>().await;
        });
        tasks.stop().await;
        assert_eq!(
            dropped.try_recv(),
            Err(oneshot::error::TryRecvError::Closed)
        );
        // Too late: nothing runs any more.
        late.spawn(async { unreachable!("the group is closed") });
        tokio::task::yield_now().await;
    }
}
