//! What a worker is about, and who is to be woken when that changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use super::shared::WorkerShared;

/// What a worker is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Accept and serve.
    Serving,
    /// The worker has its share of connections: idle ones give way, others end after their response.
    Full,
    /// No new connections; those there are end after their response.
    Draining,
}

/// The mode of a worker, with the tasks of the connections that want to know of a change.
///
/// To look costs a load; a connection registers once and is woken, instead of looking at a channel with every request.
#[derive(Debug)]
pub(crate) struct ModeCell {
    mode: AtomicU8,
    watchers: Mutex<Watchers>,
}

#[derive(Debug, Default)]
struct Watchers {
    places: Vec<Place>,
    /// The first free place.
    free: Option<u32>,
}

#[derive(Debug)]
enum Place {
    Taken(Waker),
    Free { next: Option<u32> },
}

impl ModeCell {
    pub(crate) fn new() -> Self {
        Self {
            mode: AtomicU8::new(Mode::Serving as u8),
            watchers: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> Mode {
        match self.mode.load(SeqCst) {
            mode if mode == Mode::Serving as u8 => Mode::Serving,
            mode if mode == Mode::Full as u8 => Mode::Full,
            _ => Mode::Draining,
        }
    }

    /// Changes the mode, and wakes whoever watches.
    pub(crate) fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, SeqCst);
        self.wake_all();
    }

    /// Changes the mode if it is `from`; returns whether it was.
    pub(crate) fn change(&self, from: Mode, to: Mode) -> bool {
        let is_changed = self
            .mode
            .compare_exchange(from as u8, to as u8, SeqCst, SeqCst)
            .is_ok();
        if is_changed {
            self.wake_all();
        }
        is_changed
    }

    fn wake_all(&self) {
        for place in &self.lock().places {
            if let Place::Taken(waker) = place {
                waker.wake_by_ref();
            }
        }
    }

    fn enter(&self, waker: &Waker) -> u32 {
        let mut watchers = self.lock();
        let taken = Place::Taken(waker.clone());
        let Some(place) = watchers.free else {
            watchers.places.push(taken);
            return (watchers.places.len() - 1) as u32;
        };
        let before = std::mem::replace(&mut watchers.places[place as usize], taken);
        watchers.free = match before {
            Place::Free { next } => next,
            Place::Taken(_) => None,
        };
        place
    }

    fn leave(&self, place: u32) {
        let mut watchers = self.lock();
        let next = watchers.free.replace(place);
        let freed = std::mem::replace(&mut watchers.places[place as usize], Place::Free { next });
        drop(watchers);
        // The last reference to a task drops the task, which may hold anything.
        drop(freed);
    }

    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock()
    }
}

/// Has a task woken when the worker's mode changes, until it is dropped.
#[derive(Debug)]
pub(crate) struct ModeWatch {
    worker: Arc<WorkerShared>,
    place: u32,
}

impl ModeWatch {
    pub(crate) fn new(worker: &Arc<WorkerShared>, waker: &Waker) -> Self {
        Self {
            worker: worker.clone(),
            place: worker.mode_cell().enter(waker),
        }
    }
}

impl Drop for ModeWatch {
    fn drop(&mut self) {
        self.worker.mode_cell().leave(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;
    use crate::server::limits::Limits;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn watch(worker: &Arc<WorkerShared>) -> (Arc<Woken>, ModeWatch) {
        let woken = Arc::new(Woken::default());
        let watch = ModeWatch::new(worker, &Waker::from(woken.clone()));
        (woken, watch)
    }

    #[test]
    fn who_watches_is_woken_by_a_change_and_places_are_used_again() {
        let worker = Arc::new(WorkerShared::new(
            Limits::default(),
            1,
            Arc::default(),
            None,
        ));
        let cell = worker.mode_cell();
        let (first, first_watch) = watch(&worker);
        let (second, second_watch) = watch(&worker);
        assert!(cell.change(Mode::Serving, Mode::Full));
        assert!(!cell.change(Mode::Serving, Mode::Full), "it is not serving");
        drop(first_watch);
        cell.set(Mode::Draining);
        assert!(
            !cell.change(Mode::Full, Mode::Serving),
            "a drain is for good"
        );
        assert_eq!(cell.get(), Mode::Draining);
        assert_eq!(
            (first.0.load(SeqCst), second.0.load(SeqCst)),
            (1, 2),
            "the first one had left"
        );
        assert_eq!(Arc::strong_count(&first), 1, "its waker is gone");

        drop(second_watch);
        let _watches = [watch(&worker), watch(&worker)];
        assert_eq!(cell.lock().places.len(), 2);
    }
}
