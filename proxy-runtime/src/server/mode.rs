//! The mode of a worker, and the connections that are notified of a change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use super::offers::{Offer, Offers, Source};
use super::shared::WorkerShared;

/// The mode of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Accept and serve.
    Serving,
    /// The worker has its share of connections: idle ones are closed, others end after their
    /// response.
    Full,
    /// No new connections; existing ones end after their response.
    Draining,
}

/// The mode of a worker, with the tasks of connections to notify of a change.
///
/// A read costs one load. A connection registers once and is woken, instead of polling a channel
/// with every request.
#[derive(Debug)]
pub(crate) struct ModeCell {
    mode: AtomicU8,
    watchers: Mutex<Watchers>,
}

#[derive(Debug, Default)]
struct Watchers {
    places: Vec<Placement>,
    /// The first free place.
    free: Option<u32>,
    /// Connections that may be evicted.
    offers: Offers,
}

#[derive(Debug)]
enum Placement {
    Taken(Watcher),
    Free { next: Option<u32> },
}

#[derive(Debug)]
struct Watcher {
    waker: Waker,
    offer: Option<Offer>,
    /// True if the connection was evicted and should end.
    gives_way: bool,
}

impl Watchers {
    fn get(&mut self, place: u32) -> Option<&mut Watcher> {
        match self.places.get_mut(place as usize) {
            Some(Placement::Taken(watcher)) => Some(watcher),
            _ => None,
        }
    }
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

    /// Sets the mode and wakes all watchers.
    pub(crate) fn set(&self, mode: Mode) {
        // A task that registers at the same time reads the new mode or is woken.
        self.mode.store(mode as u8, SeqCst);
        self.wake_all();
    }

    /// Changes the mode from `from` to `to`. Returns false if it was another one.
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
            if let Placement::Taken(watcher) = place {
                watcher.waker.wake_by_ref();
            }
        }
    }

    fn enter(&self, waker: &Waker) -> u32 {
        let mut watchers = self.lock();
        let taken = Placement::Taken(Watcher {
            waker: waker.clone(),
            offer: None,
            gives_way: false,
        });
        // Free places are used again: the list grows to the largest number of connections only.
        let Some(place) = watchers.free else {
            watchers.places.push(taken);
            return (watchers.places.len() - 1) as u32;
        };
        let before = std::mem::replace(&mut watchers.places[place as usize], taken);
        watchers.free = match before {
            Placement::Free { next } => next,
            Placement::Taken(_) => None,
        };
        place
    }

    fn leave(&self, place: u32) {
        let mut watchers = self.lock();
        if let Some(offer) = watchers.get(place).and_then(|watcher| watcher.offer) {
            watchers.offers.remove(offer);
        }
        let next = watchers.free.replace(place);
        let freed = std::mem::replace(
            &mut watchers.places[place as usize],
            Placement::Free { next },
        );
        drop(watchers);
        // Dropping the last reference to a task drops the task, which may run any code.
        drop(freed);
    }

    /// Returns true if a connection may be evicted.
    pub(crate) fn has_offers(&self) -> bool {
        !self.lock().offers.is_empty()
    }

    /// Evicts the next connection. Returns false if there is none.
    pub(crate) fn evict(&self) -> bool {
        let mut watchers = self.lock();
        let Some(place) = watchers.offers.take() else {
            return false;
        };
        if let Some(watcher) = watchers.get(place) {
            watcher.offer = None;
            watcher.gives_way = true;
            watcher.waker.wake_by_ref();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock()
    }
}

/// Wakes a task when the worker's mode changes, until it is dropped.
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

impl ModeWatch {
    /// Marks the connection of a client at `source` as evictable: it has no complete request yet.
    pub(crate) fn offer(&self, source: Source) {
        let mut watchers = self.worker.mode_cell().lock();
        let is_new = watchers
            .get(self.place)
            .is_some_and(|watcher| watcher.offer.is_none() && !watcher.gives_way);
        if is_new {
            let offer = watchers.offers.add(source, self.place);
            if let Some(watcher) = watchers.get(self.place) {
                watcher.offer = Some(offer);
            }
        }
    }

    /// Ends the offer to close the idle connection: it has a request.
    pub(crate) fn withdraw(&self) {
        let mut watchers = self.worker.mode_cell().lock();
        let Some(watcher) = watchers.get(self.place) else {
            return;
        };
        // A complete request wins over an eviction that has not taken effect.
        watcher.gives_way = false;
        if let Some(offer) = watcher.offer.take() {
            watchers.offers.remove(offer);
        }
    }

    /// Returns true if the connection was evicted.
    pub(crate) fn gives_way(&self) -> bool {
        let mut watchers = self.worker.mode_cell().lock();
        watchers
            .get(self.place)
            .is_some_and(|watcher| watcher.gives_way)
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
