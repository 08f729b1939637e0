//! The streams of a connection that are being served, in the connection's own task.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::blocks::{Blocks, Lent};
use super::deadlines::{Deadline, Deadlines};
use super::ready::{Part, Ready};

/// How the serving of a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By us: the response was handed over, or broke off.
    Settled,
    /// The client has reset the stream, or gone, before it had the whole response.
    Reset,
}

/// Places that are kept while no stream is open.
const KEPT: usize = 8;

/// The streams of a connection that are being served.
///
/// They are polled in the connection's own task, so that what many of them have to say leaves with one write, and so that
/// they end with it. A place has a waker that serves one stream after the other.
pub(super) struct Streams<F> {
    ready: Arc<Ready>,
    deadlines: Rc<Deadlines>,
    places: Vec<Place<F>>,
    blocks: Rc<Blocks<F>>,
    free: Vec<u32>,
    /// Those that are being polled.
    batch: Vec<u32>,
}

struct Place<F> {
    part: Arc<Part>,
    waker: Waker,
    serving: Option<Lent<F>>,
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

    pub(super) fn deadlines(&self) -> &Rc<Deadlines> {
        &self.deadlines
    }

    /// Serves one more stream. It is polled with the next round.
    pub(super) fn begin(&mut self, make: impl FnOnce(Deadline) -> F) {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.places.len() as u32;
            let part = Part::new(&self.ready, number);
            self.places.push(Place {
                waker: Waker::from(Arc::clone(&part)),
                part,
                serving: None,
            });
            number
        });
        let serving = make(Deadline::new(&self.deadlines, number));
        let serving = Lent::new(&self.blocks, serving);
        if let Some(place) = self.places.get_mut(number as usize) {
            place.serving = Some(serving);
            place.waker.wake_by_ref();
        }
    }

    /// Whether none is being served.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Looks which parts of the task are ready; tells whether the connection is.
    pub(super) fn gather(&mut self) -> bool {
        self.batch.clear();
        self.ready.take(&mut self.batch)
    }

    /// Polls those that were [gathered](Self::gather), and tells how many of them have been reset.
    pub(super) fn poll(&mut self) -> u32 {
        let mut has_ended = false;
        let mut resets = 0;
        for number in self.batch.drain(..) {
            // What was at a place that is given up may still be woken.
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
        if has_ended && self.places.len() > KEPT && self.is_empty() {
            self.places.truncate(KEPT);
            self.free.clear();
            self.free.extend((0..KEPT as u32).rev());
        }
        resets
    }
}
