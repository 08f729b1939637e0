//! Which threads are workers.

use std::marker::PhantomData;

use parking_lot::Mutex;

use super::{PLACE, PLACES};

/// Workers of this process, by place.
static TAKEN: Mutex<[u32; PLACES]> = Mutex::new([0; PLACES]);

/// Makes the calling thread a worker until it is dropped, which has to be on the same thread.
#[derive(Debug)]
#[must_use = "dropped at once, the thread is no worker"]
pub(crate) struct WorkerPlace {
    place: usize,
    /// The place is the thread's.
    _local: PhantomData<*const ()>,
}

impl WorkerPlace {
    /// Takes a place that nobody has, or one that few have.
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
