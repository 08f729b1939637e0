//! The memory that one connection holds.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Waker;

use parking_lot::Mutex;

use crate::server::offers::Source;

/// The memory that one connection holds. Created when the connection first has to wait.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(super) source: Source,
    bytes: AtomicU64,
    turn: AtomicU64,
    /// The index in the worker's list.
    place: AtomicUsize,
    is_shed: AtomicBool,
    /// The bytes at the time when the connection was told to end.
    marked: AtomicU64,
    /// The waker of the task that must end.
    waker: Mutex<Option<Waker>>,
}

impl Holding {
    pub(super) fn new(source: Source, place: usize) -> Self {
        Self {
            source,
            bytes: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            place: AtomicUsize::new(place),
            is_shed: AtomicBool::new(false),
            marked: AtomicU64::new(0),
            waker: Mutex::new(None),
        }
    }

    /// Returns true if the connection must end.
    #[inline]
    pub(crate) fn is_shed(&self) -> bool {
        self.is_shed.load(Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }

    pub(super) fn moved(&self, turn: u64) {
        self.turn.store(turn, Relaxed);
    }

    pub(super) fn place(&self) -> usize {
        self.place.load(Relaxed)
    }

    pub(super) fn set_place(&self, place: usize) {
        self.place.store(place, Relaxed);
    }

    /// Sets the task to wake when the connection must end.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut watching = self.waker.lock();
        // The same task polls again and again; its waker is cloned once.
        if watching
            .as_ref()
            .is_none_or(|known| !known.will_wake(waker))
        {
            *watching = Some(waker.clone());
        }
    }

    /// Marks the connection to end. Returns the bytes that it holds.
    pub(super) fn mark_shed(&self) -> u64 {
        let bytes = self.bytes();
        // The same number is subtracted when the connection has ended.
        self.marked.store(bytes, Relaxed);
        self.is_shed.store(true, Relaxed);
        bytes
    }

    pub(super) fn take_marked(&self) -> u64 {
        self.marked.swap(0, Relaxed)
    }

    pub(super) fn wake(&self) {
        // Cloned, so that it is not woken under the lock.
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Marks the connection as ended. Returns the bytes that it held.
    pub(super) fn end(&self) -> u64 {
        self.bytes.swap(0, Relaxed)
    }

    /// Records that a part of the connection holds `after` bytes instead of `before`.
    pub(super) fn change(&self, before: u64, after: u64) {
        match after.checked_sub(before) {
            Some(more) => self.bytes.fetch_add(more, Relaxed),
            None => self.bytes.fetch_sub(before - after, Relaxed),
        };
    }
}
