//! The place where an exchange leaves a response for the caller of a tower service.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::ForwardErrorKind;
use crate::head::{HeldValues, put_in_place};
use crate::local_pool::{LocalPool, Recycle};
use crate::response::ExchangeInfo;

/// Maximum number of unused slots per thread: the number of concurrent requests on a busy thread.
const MOST: usize = 128;

thread_local! {
    static POOL: LocalPool<Arc<ResponseSlot>, MOST> = const { LocalPool::new() };
}

/// The response of an exchange as far as its caller has not taken it: the head, at most one part of the body, and
/// the trailers.
///
/// The exchange writes into it, and [`Exchange`](super::Exchange) or [`ExchangeBody`](super::ExchangeBody), which
/// polls the exchange, takes it out in the same poll. So the lock is always free.
#[derive(Debug, Default)]
pub(crate) struct ResponseSlot(Mutex<SlotContent>);

#[derive(Debug, Default)]
struct SlotContent {
    head: Option<Response<()>>,
    /// The length of the body, if it is known.
    length: Option<u64>,
    data: Option<Bytes>,
    trailers: Option<Box<HeaderMap>>,
    /// The information for logs, until the head is there.
    info: Option<Box<ExchangeInfo>>,
    end: Option<Result<(), ForwardErrorKind>>,
    /// True if the head begins a tunnel.
    is_tunnel: bool,
    /// The time at which the exchange must be polled, if it is not sooner.
    due: Option<Instant>,
    /// Values that the body of the response holds.
    held: HeldValues,
}

impl ResponseSlot {
    /// Returns an empty slot.
    pub(super) fn acquire() -> Arc<Self> {
        POOL.acquire().unwrap_or_default()
    }

    /// Keeps the memory of a slot that has no other owner.
    pub(super) fn release(mut slot: Arc<Self>) {
        if let Some(own) = Arc::get_mut(&mut slot) {
            *own = Self::default();
            POOL.keep(slot);
        }
    }

    /// Puts the head of a response, whose body has this length if that is known.
    pub(crate) fn put_head(&self, mut head: Response<()>, length: Option<u64>) {
        let mut content = self.0.lock();
        if let Some(info) = content.info.take() {
            put_in_place(head.extensions_mut(), *info);
        }
        content.head = Some(head);
        content.length = length;
    }

    /// Puts the information about the response.
    pub(crate) fn put_info(&self, info: ExchangeInfo) {
        let mut content = self.0.lock();
        match &mut content.head {
            Some(head) => put_in_place(head.extensions_mut(), info),
            None => content.info = Some(Box::new(info)),
        }
    }

    /// Puts the next part of the body. The last one must have been taken.
    pub(crate) fn put_data(&self, data: Bytes) {
        self.0.lock().data = Some(data);
    }

    /// Puts the trailers, which follow the part of the body that is there.
    pub(crate) fn put_trailers(&self, trailers: Box<HeaderMap>) {
        self.0.lock().trailers = Some(trailers);
    }

    /// Returns true if the last part was not taken.
    pub(crate) fn has_data(&self) -> bool {
        self.0.lock().data.is_some()
    }

    /// Records the end of the response, after the data in the slot.
    pub(crate) fn end(&self, end: Result<(), ForwardErrorKind>) {
        // The first end counts; later ones follow from it.
        self.0.lock().end.get_or_insert(end);
    }

    /// Records that the head, which follows, begins a tunnel.
    pub(crate) fn begin_tunnel(&self) {
        self.0.lock().is_tunnel = true;
    }

    /// Asks for a poll of the exchange at `due`.
    pub(crate) fn wake_at(&self, due: Instant) {
        self.0.lock().due = Some(due);
    }

    /// Takes the time at which the exchange must be polled.
    pub(crate) fn take_due(&self) -> Option<Instant> {
        self.0.lock().due.take()
    }

    /// Adds values that the body of the response holds until it ends.
    pub(crate) fn hold(&self, held: HeldValues) {
        self.0.lock().held = held;
    }

    /// Takes the head, with the length of the body if that is known, and the values that the body holds.
    pub(super) fn take_head(&self) -> Option<(Response<()>, Option<u64>, HeldValues)> {
        let mut content = self.0.lock();
        let head = content.head.take()?;
        Some((head, content.length, std::mem::take(&mut content.held)))
    }

    /// Takes the data of the body that is in the slot.
    pub(super) fn take_rest(&self) -> Taken {
        let mut content = self.0.lock();
        Taken {
            data: content.data.take(),
            trailers: content.trailers.take(),
            end: content.end,
            is_tunnel: content.is_tunnel,
        }
    }
}

/// A part of a response's body, with its trailers and end as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) data: Option<Bytes>,
    pub(super) trailers: Option<Box<HeaderMap>>,
    pub(super) end: Option<Result<(), ForwardErrorKind>>,
    pub(super) is_tunnel: bool,
}
