//! State of which every worker has a part of its own, so that no two of them write to one line of the cache.
//!
//! A counter that all workers write to is fetched from another core by nearly every request; at eight cores that costs
//! more than counting does. So each worker counts for itself, and whoever wants to know adds up. Parts take memory, so what few
//! requests write is shared until it is [busy](BUSY).

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(feature = "server")]
mod place;

#[cfg(feature = "server")]
pub(crate) use self::place::WorkerPlace;

/// How many parts there are. The first one is that of all threads that are no workers; with more than 63 workers some share
/// one.
const PLACES: usize = 64;

/// Requests a second from which on each worker has a part: below, cores seldom meet at a line, and memory counts for more.
pub(crate) const BUSY: u64 = 100;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

/// Keeps what one thread writes away from what others read or write. Two lines, since processors fetch them in pairs.
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

/// A `T` that all have together until it is [split](Self::split); then one for each worker, made when the worker first needs it.
///
/// A part may be written by several threads even then: those that are no workers go on with the first one.
#[derive(Debug)]
pub(crate) struct PerWorker<T> {
    is_split: AtomicBool,
    /// That of all threads before the split, and of those that are no workers.
    common: Part<T>,
    workers: OnceLock<Box<[Part<T>; PLACES - 1]>>,
}

type Part<T> = OnceLock<Arc<OwnLine<T>>>;

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
    /// Gives each worker a part of its own from now on.
    pub(crate) fn split(&self) {
        if !self.is_split.load(Ordering::Relaxed) {
            self.is_split.store(true, Ordering::Relaxed);
        }
    }

    /// Where the part of the calling thread is among those of workers; `None` if it is the common one.
    #[inline]
    fn place(&self) -> Option<usize> {
        match self.is_split.load(Ordering::Relaxed) {
            true => PLACE.get().checked_sub(1),
            false => None,
        }
    }

    /// The part of the calling thread, if it has needed one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        let part = match self.place() {
            None => &self.common,
            Some(place) => &self.workers.get()?[place],
        };
        part.get().map(|part| &part.0)
    }

    /// The parts that there are.
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
    /// The part of the calling thread. Who adds to a part what is taken off later keeps it, and takes it off the same part.
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

    /// Held by tests that want places of their own, or all there are.
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
        // What was begun before ends there.
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
            // Nobody may be waiting any more.
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
