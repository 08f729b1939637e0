//! The queue of events between the connection, which must not wait, and a slower reader.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The queued records of a stream, limited in number and length. When there are too many, the oldest are
/// dropped and counted.
#[derive(Debug)]
pub(super) struct Queue {
    max_records: usize,
    max_bytes: usize,
    state: Mutex<QueueState>,
    /// The notification for the waiting reader.
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    records: VecDeque<Bytes>,
    bytes: usize,
    /// Number of records that were dropped before the first of `records`.
    lost: u64,
    /// True if no more records follow.
    has_ended: bool,
    /// True if the reader was dropped.
    is_abandoned: bool,
}

/// The next of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Record(Bytes),
    /// Number of records that were dropped.
    Lost(u64),
}

impl Queue {
    pub(super) fn new(max_records: usize, max_bytes: usize) -> Self {
        Self {
            max_records: max_records.max(1),
            max_bytes,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Adds a record. Copies its bytes, so that the buffer it came in is released.
    pub(super) fn push(&self, record: &[u8]) {
        let mut state = self.state();
        if state.is_abandoned {
            return;
        }
        state.bytes += record.len();
        // A slice of what was read would keep all of that alive.
        state.records.push_back(Bytes::copy_from_slice(record));
        while state.records.len() > self.max_records || state.bytes > self.max_bytes {
            let Some(lost) = state.records.pop_front() else {
                break;
            };
            state.bytes -= lost.len();
            state.lost += 1;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Marks the end. Queued records can still be read.
    pub(super) fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_one();
    }

    /// Marks the reader as dropped.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.is_abandoned = true;
        state.records = VecDeque::new();
        state.bytes = 0;
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.state().is_abandoned
    }

    /// The next; `None` at the end. For one that waits at a time.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; nothing is lost.
    pub(super) async fn next(&self) -> Option<Next> {
        loop {
            {
                let mut state = self.state();
                if state.lost > 0 {
                    return Some(Next::Lost(std::mem::take(&mut state.lost)));
                }
                if let Some(record) = state.records.pop_front() {
                    state.bytes -= record.len();
                    return Some(Next::Record(record));
                }
                if state.has_ended {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Nothing panics while it holds the lock.
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn record(bytes: &'static [u8]) -> Next {
        Next::Record(Bytes::from_static(bytes))
    }

    #[tokio::test]
    async fn the_oldest_are_lost_when_there_are_too_many() {
        let queue = Queue::new(2, 100);
        for bytes in [b"1", b"2", b"3", b"4"] {
            queue.push(bytes);
        }
        assert_eq!(queue.next().await, Some(Next::Lost(2)));
        assert_eq!(queue.next().await, Some(record(b"3")));
        queue.push(b"5");
        queue.push(b"6");
        assert_eq!(queue.next().await, Some(Next::Lost(1)));
        assert_eq!(queue.next().await, Some(record(b"5")));
        assert_eq!(queue.next().await, Some(record(b"6")));
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test]
    async fn they_are_bounded_by_their_length_too() {
        let queue = Queue::new(100, 10);
        queue.push(b"1234");
        queue.push(b"5678");
        queue.push(b"9abc");
        assert_eq!(queue.next().await, Some(Next::Lost(1)));
        assert_eq!(queue.next().await, Some(record(b"5678")));
        // One that can never fit is lost, with all before it.
        queue.push(b"0123456789a");
        assert_eq!(queue.next().await, Some(Next::Lost(2)));
        queue.push(b"0123456789");
        assert_eq!(queue.next().await, Some(record(b"0123456789")));
    }

    #[tokio::test]
    async fn what_came_before_the_end_can_be_had_after_it() {
        let queue = Queue::new(9, 9);
        queue.push(b"1");
        queue.end();
        assert_eq!(queue.next().await, Some(record(b"1")));
        assert_eq!(queue.next().await, None);
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_waits_is_woken() {
        let queue = Queue::new(9, 9);
        let (next, ()) = tokio::join!(queue.next(), async { queue.push(b"1") });
        assert_eq!(next, Some(record(b"1")));
        let (next, ()) = tokio::join!(queue.next(), async { queue.end() });
        assert_eq!(next, None);
    }

    #[test]
    fn an_abandoned_queue_keeps_nothing() {
        let queue = Queue::new(9, 9);
        queue.push(b"1");
        queue.abandon();
        queue.push(b"2");
        let state = queue.state();
        assert_eq!((state.records.len(), state.bytes), (0, 0));
    }
}
