//! The registry of worker threads.

use std::marker::PhantomData;

use parking_lot::Mutex;

use super::{PLACE, PLACES};

/// Number of workers per slot.
static TAKEN: Mutex<[u32; PLACES]> = Mutex::new([0; PLACES]);

/// Marks the calling thread as a worker until dropped, which must happen on the same thread.
#[derive(Debug)]
#[must_use = "dropped at once, the thread is no worker"]
pub(crate) struct WorkerPlace {
    place: usize,
    /// Not `Send`: the slot belongs to the thread.
    _local: PhantomData<*const ()>,
}

impl WorkerPlace {
    /// Takes the slot with the fewest workers.
    pub(crate) fn take() -> Self {
        let mut taken = TAKEN.lock();
        let place = (1..PLACES).min_by_key(|place| taken[*place]).unwrap_or(0);
        taken[place] += 1;
        PLACE.set(place);
        Self {
            place,
            _local: PhantomData,
        }
    }
}

impl Drop for WorkerPlace {
    fn drop(&mut self) {
        PLACE.set(0);
        let mut taken = TAKEN.lock();
        taken[self.place] -= 1;
    }
}
