//! State of which every worker has a part of its own, so that no two of them write to one line of the cache.
//!
//! A counter that all workers write to is fetched from another core by nearly every request; at eight cores that costs
//! more than counting does. So each worker counts for itself, and whoever wants to know adds up.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

#[cfg(feature = "server")]
mod place;

#[cfg(feature = "server")]
pub(crate) use self::place::WorkerPlace;

/// How many parts there are. The first one is that of all threads that are no workers; with more workers than the others
/// are, some share one.
const PLACES: usize = 32;

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

/// A `T` for each worker, made when the worker first needs it.
///
/// A part may be written by several threads nevertheless: those that are no workers have one together.
#[derive(Debug)]
pub(crate) struct PerWorker<T>(OnceLock<Box<Parts<T>>>);

type Parts<T> = [OnceLock<Arc<OwnLine<T>>>; PLACES];

impl<T> Default for PerWorker<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> PerWorker<T> {
    /// The part of the calling thread, if it has needed one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        let parts = self.0.get()?;
        parts[PLACE.get()].get().map(|part| &part.0)
    }

    /// The parts that there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let parts = self.0.get().into_iter();
        parts.flat_map(|parts| {
            parts
                .iter()
                .filter_map(|part| part.get().map(|part| &part.0))
        })
    }
}

impl<T: Default> PerWorker<T> {
    /// The part of the calling thread, for what is done there to be taken back there, from whatever thread.
    #[inline]
    pub(crate) fn here(&self) -> &Arc<OwnLine<T>> {
        match self.0.get() {
            Some(parts) => match parts[PLACE.get()].get() {
                Some(part) => part,
                None => self.begin(),
            },
            None => self.begin(),
        }
    }

    #[cold]
    fn begin(&self) -> &Arc<OwnLine<T>> {
        let parts = self
            .0
            .get_or_init(|| Box::new([const { OnceLock::new() }; PLACES]));
        parts[PLACE.get()].get_or_init(Arc::default)
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn each_worker_has_a_part_and_other_threads_have_one_together() {
        let counts = PerWorker::<AtomicU64>::default();
        assert!(counts.get().is_none() && counts.iter().next().is_none());
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
        let counts = PerWorker::<AtomicU64>::default();
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
        assert_eq!(PLACE.get(), 0);
    }
}
