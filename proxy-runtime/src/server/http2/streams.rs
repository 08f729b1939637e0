//! The streams in progress of a connection, polled in the connection's own task.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::blocks::{Blocks, PooledTask};
use super::deadlines::{Deadline, StreamDeadlines};
use super::ready::{Ready, TaskPart};

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The server has ended the stream: the response was sent, or aborted.
    Settled,
    /// The client has reset the stream or disconnected before the end of the response.
    Reset,
}

/// Number of slots that are kept while no stream is open.
const KEPT: usize = 8;

/// The streams in progress of a connection.
///
/// They are polled in the connection's own task, so that output of several streams is written with
/// one call, and so that they end with the connection. The waker of a slot serves one stream after
/// another.
pub(super) struct Streams<F> {
    ready: Arc<Ready>,
    deadlines: Rc<StreamDeadlines>,
    places: Vec<StreamSlot<F>>,
    blocks: Rc<Blocks<F>>,
    free: Vec<u32>,
    /// The slots that are being polled.
    batch: Vec<u32>,
}

struct StreamSlot<F> {
    part: Arc<TaskPart>,
    waker: Waker,
    serving: Option<PooledTask<F>>,
}

impl<F: Future<Output = Ending>> Streams<F> {
    pub(super) fn new(ready: &Arc<Ready>, blocks: Rc<Blocks<F>>) -> Self {
        Self {
            ready: Arc::clone(ready),
            deadlines: Rc::default(),
            places: Vec::new(),
            blocks,
            free: Vec::new(),
            batch: Vec::new(),
        }
    }

    pub(super) fn deadlines(&self) -> &Rc<StreamDeadlines> {
        &self.deadlines
    }

    /// Begins to serve a stream, which is polled in the next round.
    pub(super) fn begin(&mut self, make: impl FnOnce(Deadline) -> F) {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.places.len() as u32;
            let part = TaskPart::new(&self.ready, number);
            self.places.push(StreamSlot {
                waker: Waker::from(Arc::clone(&part)),
                part,
                serving: None,
            });
            number
        });
        let serving = make(Deadline::new(&self.deadlines, number));
        let serving = PooledTask::new(&self.blocks, serving);
        if let Some(place) = self.places.get_mut(number as usize) {
            place.serving = Some(serving);
            // Schedules the first poll.
            place.waker.wake_by_ref();
        }
    }

    /// Returns true if no stream is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Collects the ready parts of the task. Returns true if the connection is ready.
    pub(super) fn gather(&mut self) -> bool {
        self.batch.clear();
        self.ready.take(&mut self.batch)
    }

    /// Polls the [collected](Self::gather) streams. Returns the number of those that were reset.
    pub(super) fn poll(&mut self) -> u32 {
        let mut has_ended = false;
        let mut resets = 0;
        for number in self.batch.drain(..) {
            // The waker of a removed slot may still be called.
            let Some(place) = self.places.get_mut(number as usize) else {
                continue;
            };
            place.part.begin();
            let Some(serving) = &mut place.serving else {
                continue;
            };
            let mut cx = Context::from_waker(&place.waker);
            if let Poll::Ready(ending) = serving.poll(&mut cx) {
                resets += u32::from(ending == Ending::Reset);
                place.serving = None;
                self.free.push(number);
                has_ended = true;
            }
        }
        // Releases the memory of a burst of streams.
        if has_ended && self.places.len() > KEPT && self.is_empty() {
            self.places.truncate(KEPT);
            self.free.clear();
            self.free.extend((0..KEPT as u32).rev());
        }
        resets
    }
}
