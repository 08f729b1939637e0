//! Tasks that end with their owner.

use std::any::Any;
use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;

/// The owner of a group of tasks: aborts them when dropped, and panics if one of them has panicked,
/// so that a failed assertion in a task fails the test.
pub(crate) struct Tasks {
    spawner: Spawner,
}

/// Adds tasks to a group without owning it, so that a task may hold it and add further ones.
#[derive(Clone)]
pub(crate) struct Spawner {
    group: Arc<Mutex<TaskGroup>>,
}

#[derive(Default)]
struct TaskGroup {
    tasks: JoinSet<()>,
    /// The panic of the first task that had one.
    panic: Option<Panic>,
    closed: bool,
}

type Panic = Box<dyn Any + Send>;

impl TaskGroup {
    /// Drops the tasks that have ended.
    fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            let panic = ended.err().and_then(|error| error.try_into_panic().ok());
            self.panic = self.panic.take().or(panic);
        }
    }
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

    /// Aborts all tasks and waits until the last has been dropped, with its sockets.
    ///
    /// # Panics
    ///
    /// Panics if a task has panicked.
    pub(crate) async fn stop(self) {
        let (mut tasks, panic) = self.spawner.close();
        tasks.shutdown().await;
        raise(panic);
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let (tasks, panic) = self.spawner.close();
        drop(tasks);
        raise(panic);
    }
}

fn raise(panic: Option<Panic>) {
    // A second panic would abort all tests.
    if let Some(panic) = panic
        && !std::thread::panicking()
    {
        resume_unwind(panic);
    }
}

impl Spawner {
    /// Spawns on the current runtime; does nothing once the owner is dropped.
    #[track_caller]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut group = self.lock();
        if group.closed {
            return;
        }
        // Here, so that a long-lived group does not grow with each connection.
        group.reap();
        group.tasks.spawn(task);
    }

    fn close(&self) -> (JoinSet<()>, Option<Panic>) {
        let mut group = self.lock();
        group.closed = true;
        group.reap();
        (std::mem::take(&mut group.tasks), group.panic.take())
    }

    fn lock(&self) -> MutexGuard<'_, TaskGroup> {
        self.group.lock()
    }
}

/// Lets hyper run HTTP/2 streams in the group, so that they end with the owner too.
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tokio::sync::oneshot;

    use super::Tasks;
    use crate::time::guarded;

    #[tokio::test]
    async fn dropping_the_owner_drops_what_its_tasks_hold() {
        let (held, dropped) = oneshot::channel::<()>();
        let tasks = Tasks::new();
        let inner = tasks.spawner();
        tasks.spawn(async move {
            // A task that adds a task which holds the spawner: a cycle that abort must break.
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
    async fn a_panic_of_a_task_is_one_of_its_owner() {
        for others in [0, 3] {
            let tasks = Tasks::new();
            tasks.spawn(async { panic!("as intended") });
            for _ in 0..others {
                // Ended tasks are dropped with each new one.
                tokio::task::yield_now().await;
                tasks.spawn(async {});
            }
            tokio::task::yield_now().await;
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(tasks)));
            let panic = dropped.unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"as intended"));
        }
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
        // The group is closed.
        late.spawn(async { unreachable!("the group is closed") });
        tokio::task::yield_now().await;
    }
}
