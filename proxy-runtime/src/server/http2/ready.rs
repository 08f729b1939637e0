//! The parts of a connection's task that are ready to be polled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::task::{Context, Wake, Waker};

use parking_lot::{Mutex, MutexGuard};

/// The slot of the connection itself, beside those of its streams.
pub(super) const CONNECTION: u32 = u32::MAX;

/// The parts of a connection's task that are ready to be polled: the connection, or some of its
/// streams.
///
/// All parts live in one task. While the task is being polled, a part that is woken is only added
/// to the list, which the task checks before it waits. Other wake-ups wake the task itself.
#[derive(Debug, Default)]
pub(super) struct Ready(Mutex<ReadyState>);

#[derive(Debug, Default)]
struct ReadyState {
    streams: Vec<u32>,
    connection: bool,
    /// True if the task will check the list before it waits.
    is_polling: bool,
    task: Option<Waker>,
}

impl Ready {
    /// Begins a poll of the task.
    pub(super) fn begin(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        state.is_polling = true;
        match &mut state.task {
            // `clone_from` keeps a waker of the same task.
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Moves the slots of ready streams to `streams`, which must be empty. Returns true if the
    /// connection is ready.
    pub(super) fn take(&self, streams: &mut Vec<u32>) -> bool {
        let mut state = self.lock();
        // Swapped, so that both lists keep their memory.
        std::mem::swap(&mut state.streams, streams);
        std::mem::take(&mut state.connection)
    }

    /// Ends a poll of the task. Returns false if more parts are ready.
    pub(super) fn end(&self) -> bool {
        let mut state = self.lock();
        state.is_polling = state.connection || !state.streams.is_empty();
        !state.is_polling
    }

    /// Yields to other tasks, and wakes this one again.
    pub(super) fn pause(&self) {
        let task = {
            let mut state = self.lock();
            state.is_polling = false;
            state.task.clone()
        };
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Marks the part in this slot as ready.
    pub(super) fn push(&self, place: u32) {
        let task = {
            let mut state = self.lock();
            match place {
                CONNECTION => state.connection = true,
                stream => state.streams.push(stream),
            }
            // During a poll the task looks at the list again at its end.
            match state.is_polling {
                true => None,
                false => state.task.clone(),
            }
        };
        if let Some(task) = task {
            task.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadyState> {
        self.0.lock()
    }
}

/// A waker of one part of a connection's task.
///
/// It outlives the stream in its slot: the next stream there may be polled once too often, which is
/// harmless.
#[derive(Debug)]
pub(super) struct TaskPart {
    ready: Arc<Ready>,
    place: u32,
    is_listed: AtomicBool,
}

impl TaskPart {
    pub(super) fn new(ready: &Arc<Ready>, place: u32) -> Arc<Self> {
        Arc::new(Self {
            ready: Arc::clone(ready),
            place,
            is_listed: AtomicBool::new(false),
        })
    }

    /// Call it before the part is polled: later wake-ups count again.
    pub(super) fn begin(&self) {
        self.is_listed.swap(false, AcqRel);
    }
}

impl Wake for TaskPart {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_listed.swap(true, AcqRel) {
            self.ready.push(self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn the_task_is_woken_from_outside_only_and_a_part_is_listed_once() {
        let task = Arc::new(Task::default());
        let woken = || task.0.load(SeqCst);
        let waker = Waker::from(task.clone());
        let ready = Arc::new(Ready::default());
        let part = TaskPart::new(&ready, 3);
        let part_waker = Waker::from(part.clone());
        let mut streams = Vec::new();

        ready.begin(&Context::from_waker(&waker));
        part_waker.wake_by_ref();
        part_waker.wake_by_ref();
        assert_eq!(woken(), 0, "it is looking");
        assert!(!ready.end(), "there is something");
        assert!(!ready.take(&mut streams), "not the connection");
        assert_eq!(streams, [3]);
        streams.clear();
        part_waker.wake_by_ref();
        assert!(ready.end(), "it was not polled since it was listed");
        part.begin();

        part_waker.wake_by_ref();
        assert_eq!(woken(), 1);
        Waker::from(TaskPart::new(&ready, CONNECTION)).wake();
        assert_eq!(woken(), 2);
        ready.begin(&Context::from_waker(&waker));
        assert!(ready.take(&mut streams));
        assert_eq!(streams, [3]);
        ready.pause();
        assert_eq!(woken(), 3);
    }
}
