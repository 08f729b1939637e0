//! State with a part per worker, so that no two workers write to the same cache line.
//!
//! A counter that all workers write to is fetched from another core by nearly every request; at
//! eight cores that costs more than counting does. Therefore each worker counts for itself, and
//! readers add up. Parts need memory, so state that few requests write is shared until it is
//! [busy](BUSY).

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(feature = "server")]
mod place;

#[cfg(feature = "server")]
pub(crate) use self::place::WorkerPlace;

/// Number of parts. The first belongs to all threads that are no workers. With more than 63
/// workers, some share a part.
const PLACES: usize = 64;

/// Requests per second from which each worker has a part. Below, cores rarely contend for a cache
/// line, and memory counts for more.
pub(crate) const BUSY: u64 = 100;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

/// Keeps a value on its own cache lines. Two lines, since processors prefetch pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

impl<T> Deref for OwnLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A `T` that all threads share until it is [split](Self::split); then one per worker, created at
/// its first use.
///
/// Several threads may write to the first part even after the split: all that are no workers.
#[derive(Debug)]
pub(crate) struct PerWorker<T> {
    is_split: AtomicBool,
    /// The part of all threads before the split, and of threads that are no workers afterwards.
    common: WorkerShare<T>,
    workers: OnceLock<Box<[WorkerShare<T>; PLACES - 1]>>,
}

type WorkerShare<T> = OnceLock<Arc<OwnLine<T>>>;

impl<T> Default for PerWorker<T> {
    fn default() -> Self {
        Self {
            is_split: AtomicBool::new(false),
            common: OnceLock::new(),
            workers: OnceLock::new(),
        }
    }
}

impl<T> PerWorker<T> {
    /// Gives each worker its own part from now on.
    pub(crate) fn split(&self) {
        // The check avoids a write to a shared line on every call.
        if !self.is_split.load(Ordering::Relaxed) {
            self.is_split.store(true, Ordering::Relaxed);
        }
    }

    /// The index of the calling worker's part; `None` for the shared part.
    #[inline]
    fn place(&self) -> Option<usize> {
        // A stale value only lets a thread use the shared part once more.
        match self.is_split.load(Ordering::Relaxed) {
            true => PLACE.get().checked_sub(1),
            false => None,
        }
    }

    /// The part of the calling thread, if it exists.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        let part = match self.place() {
            None => &self.common,
            Some(place) => &self.workers.get()?[place],
        };
        part.get().map(|part| &part.0)
    }

    /// All parts that exist.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let workers = self
            .workers
            .get()
            .into_iter()
            .flat_map(|parts| parts.iter());
        std::iter::once(&self.common)
            .chain(workers)
            .filter_map(|part| part.get().map(|part| &part.0))
    }
}

impl<T: Default> PerWorker<T> {
    /// The part of the calling thread, created if necessary. A caller that subtracts later must
    /// keep the part: the thread's part may change.
    #[inline]
    pub(crate) fn here(&self) -> &Arc<OwnLine<T>> {
        match self.place() {
            None => self.common.get_or_init(Arc::default),
            Some(place) => match self.workers.get() {
                Some(workers) => workers[place].get_or_init(Arc::default),
                None => self.begin(place),
            },
        }
    }

    #[cold]
    fn begin(&self, place: usize) -> &Arc<OwnLine<T>> {
        let none = || Box::new([const { OnceLock::new() }; PLACES - 1]);
        self.workers.get_or_init(none)[place].get_or_init(Arc::default)
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use parking_lot::Mutex;

    use super::*;

    /// Held by tests that need slots of their own, or all slots.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn alone() -> impl Drop {
        ONE_AT_A_TIME.lock()
    }

    #[test]
    fn what_is_not_split_has_one_part() {
        let counts = PerWorker::<AtomicU64>::default();
        assert!(counts.get().is_none() && counts.iter().next().is_none());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let _place = WorkerPlace::take();
                    counts.here().fetch_add(1, Relaxed);
                });
            }
        });
        assert_eq!(counts.get().unwrap().load(Relaxed), 3);
        assert_eq!(counts.iter().count(), 1);
        // A count that began before the split ends in the same part.
        let _place = WorkerPlace::take();
        let begun = Arc::clone(counts.here());
        counts.split();
        assert!(counts.get().is_none(), "its part is another one now");
        begun.fetch_sub(1, Relaxed);
        counts.here().fetch_add(4, Relaxed);
        let parts: Vec<_> = counts.iter().map(|part| part.load(Relaxed)).collect();
        assert_eq!(parts, [2, 4]);
    }

    #[test]
    fn each_worker_has_a_part_and_other_threads_have_one_together() {
        let _alone = alone();
        let counts = PerWorker::<AtomicU64>::default();
        counts.split();
        let all_are_there = Barrier::new(3);
        let work = |is_worker: bool| {
            let _place = is_worker.then(WorkerPlace::take);
            all_are_there.wait();
            for _ in 0..1_000 {
                counts.here().fetch_add(1, Relaxed);
            }
            all_are_there.wait();
            counts.get().map(|part| part.load(Relaxed))
        };
        let found = std::thread::scope(|scope| {
            let workers = [true, true, false].map(|is_worker| scope.spawn(move || work(is_worker)));
            workers.map(|worker| worker.join().unwrap())
        });
        assert_eq!(found, [Some(1_000); 3]);
        counts.here().fetch_add(5, Relaxed);
        let mut parts: Vec<_> = counts.iter().map(|part| part.load(Relaxed)).collect();
        parts.sort_unstable();
        assert_eq!(parts, [1_000, 1_000, 1_005]);
    }

    #[test]
    fn more_workers_than_places_share() {
        let _alone = alone();
        let counts = PerWorker::<AtomicU64>::default();
        counts.split();
        let all_are_there = Barrier::new(PLACES + 8);
        std::thread::scope(|scope| {
            for _ in 0..PLACES + 8 {
                scope.spawn(|| {
                    let _place = WorkerPlace::take();
                    all_are_there.wait();
                    counts.here().fetch_add(1, Relaxed);
                });
            }
        });
        let parts: Vec<_> = counts.iter().map(|part| part.load(Relaxed)).collect();
        assert_eq!(parts.iter().sum::<u64>(), PLACES as u64 + 8);
        assert!(parts.len() < PLACES + 8, "some share");
        assert!(counts.get().is_none(), "none has the part of other threads");
    }

    #[test]
    fn each_worker_of_a_server_has_a_place() {
        use crate::server::{Listener, Server};

        let _alone = alone();
        let snapshot = crate::fixtures::snapshot("{}");
        let (proxy, _driver) = crate::Proxy::builder().snapshot(snapshot).build().unwrap();
        let (places, taken) = std::sync::mpsc::channel();
        let listener = Listener::http("127.0.0.1:0".parse().unwrap());
        let server = Server::builder(move || {
            // The receiver may be gone already.
            let _ = places.send(PLACE.get());
            proxy.service()
        });
        let server = server
            .with_listener(listener)
            .with_workers(std::num::NonZeroUsize::new(3).unwrap());
        let running = server.bind().unwrap().start().unwrap();
        let mut places: Vec<_> = taken.iter().take(3).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 3);
        assert!(!places.contains(&0), "they are workers");
        drop(running);
    }

    #[test]
    fn a_place_is_given_back() {
        let place = WorkerPlace::take();
        assert_ne!(PLACE.get(), 0);
        drop(place);
        assert_eq!(PLACE.get(), 0, "the thread is no worker any more");
    }
}
