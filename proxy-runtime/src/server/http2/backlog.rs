//! The backlog of a connection: data that its streams have sent and its socket has not accepted
//! yet.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::stream::recycled::is_tight;

/// Maximum of data in `h2` for the one response of a connection, in bytes: one read of a large transfer.
const MOST: u64 = 256 * 1024;

/// The maximum for all responses of a connection with several: one read for one of them, and little for a client that
/// opens many streams with large windows and reads nothing.
const MOST_IF_SHARED: u64 = 128 * 1024;

/// The maximum while memory is tight.
const MOST_IF_TIGHT: u64 = 32 * 1024;

/// Data of a connection that were passed to `h2` and may not have reached the socket, and the
/// streams that wait for it. `is_shared`: several responses are in progress.
///
/// Used by one thread only, except by tunnels, which services may move to other threads.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    held: AtomicU32,
    /// True if data of several responses may be among it. The last one of them gets no more room than they had.
    is_shared: AtomicBool,
    /// Number of bytes that the connection had written at the last update of `held`.
    written: AtomicU64,
    /// Boxed, since most connections never have waiting streams.
    waiting: Mutex<Option<Box<BacklogEntry>>>,
}

#[derive(Debug, Default)]
struct BacklogEntry(Vec<Waker>);

impl Backlog {
    fn most(&self, is_shared: bool) -> u64 {
        match is_tight() {
            true => MOST_IF_TIGHT,
            false if is_shared || self.is_shared.load(Relaxed) => MOST_IF_SHARED,
            false => MOST,
        }
    }

    /// Waits until there is room for data. Returns the number of bytes that fit.
    pub(crate) fn poll_room(&self, is_shared: bool, cx: &mut Context<'_>) -> Poll<usize> {
        let held = self.held();
        let room = self.most(is_shared).saturating_sub(held);
        if room > 0 {
            return Poll::Ready(room as usize);
        }
        self.wait(cx);
        Poll::Pending
    }

    /// Waits until half of the room is free, so that there is enough for what a read from a destination brings: the
    /// rest of that would be held for its stream.
    #[inline]
    pub(crate) fn poll_read(&self, is_shared: bool, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_full(is_shared) {
            return Poll::Ready(());
        }
        self.wait(cx);
        Poll::Pending
    }

    fn wait(&self, cx: &mut Context<'_>) {
        let mut waiting = self.waiting.lock();
        let BacklogEntry(waiting) = &mut **waiting.get_or_insert_default();
        // A stream that polls twice registers once.
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    /// Returns true if nothing should be read from destinations: it would only be held in memory.
    #[inline]
    pub(crate) fn is_full(&self, is_shared: bool) -> bool {
        let held = self.held();
        // Mostly nothing is held, which needs no look at the memory of the thread.
        held != 0 && held > self.most(is_shared) / 2
    }

    /// Number of bytes that were passed on and may not have reached the socket.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Relaxed).into()
    }

    /// Records that a stream passes on `bytes`.
    pub(super) fn add(&self, bytes: usize, is_shared: bool) {
        if is_shared {
            self.is_shared.store(true, Relaxed);
        }
        // No more than there is room for.
        self.held.fetch_add(bytes as u32, Relaxed);
    }

    /// Records a flush of `h2`: `written` is the total of the connection, and everything was
    /// written unless the socket is full. The total includes frame headers, so the backlog seems
    /// smaller than it is until it is empty.
    pub(super) fn is_flushed(&self, written: u64, is_full: bool, is_shared: bool) {
        let before = self.written.swap(written, Relaxed);
        let held = self.held();
        if held == 0 {
            return;
        }
        let left = match is_full {
            true => held.saturating_sub(written - before),
            false => 0,
        };
        self.held.store(left as u32, Relaxed);
        if left == 0 {
            self.is_shared.store(false, Relaxed);
        }
        // At least half is free, so that a slow socket does not wake all streams for every few
        // bytes.
        if left <= self.most(is_shared) / 2 {
            self.wake();
        }
    }

    /// Records that the socket is closed, so that tunnels, which may outlive their connection,
    /// notice it.
    pub(crate) fn is_gone(&self) {
        self.held.store(0, Relaxed);
        self.wake();
    }

    /// Wakes the streams that wait. The first one goes last: it may be the one that took all of the room before, and
    /// would take all of it once more.
    fn wake(&self) {
        if let Some(waiting) = &mut *self.waiting.lock()
            && !waiting.0.is_empty()
        {
            waiting.0.rotate_left(1);
            for waker in waiting.0.drain(..) {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn streams_wait_for_the_socket_once_each_and_in_their_order() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let backlog = Backlog::default();
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize));
        backlog.add(MOST as usize - 10, false);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(10));
        backlog.add(10, false);
        assert!(backlog.poll_room(false, cx).is_pending());
        assert!(
            backlog.poll_room(false, cx).is_pending(),
            "it is listed once"
        );

        backlog.is_flushed(100, true, false);
        assert_eq!(woken.0.load(SeqCst), 0, "a little is not worth it");
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(100));
        backlog.is_flushed(MOST / 2, true, false);
        assert_eq!(woken.0.load(SeqCst), 1);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize / 2));
        backlog.is_flushed(MOST / 2 + 1, false, false);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize));
        assert_eq!(woken.0.load(SeqCst), 1, "nobody waits");
    }

    #[test]
    fn streams_that_wait_take_turns() {
        #[derive(Default)]
        struct Order(Mutex<Vec<u32>>);
        struct Stream(u32, Arc<Order>);
        impl Wake for Stream {
            fn wake(self: Arc<Self>) {
                self.1.0.lock().push(self.0);
            }
        }
        let order = Arc::new(Order::default());
        let backlog = Backlog::default();
        let mut turn: Vec<_> = (0..3).collect();
        let mut first = Vec::new();
        for round in 1..=6 {
            // The first one takes all of the room.
            backlog.add(MOST as usize, false);
            for number in turn {
                let waker = Waker::from(Arc::new(Stream(number, Arc::clone(&order))));
                let cx = &mut Context::from_waker(&waker);
                assert!(backlog.is_full(false) && backlog.poll_room(false, cx).is_pending());
            }
            backlog.is_flushed(round * MOST, false, false);
            assert!(!backlog.is_full(false));
            turn = std::mem::take(&mut *order.0.lock());
            first.push(turn[0]);
        }
        assert_eq!(first, [1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn it_is_small_where_memory_is_tight_and_nobody_waits_for_ever() {
        use crate::stream::recycled::set_tight;
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let backlog = Backlog::default();
        backlog.add(100_000, false);
        set_tight(true);
        assert!(backlog.poll_room(false, cx).is_pending());
        backlog.is_flushed(50_000, true, false);
        assert_eq!(woken.0.load(SeqCst), 0, "50 000 are still too much");
        backlog.is_flushed(90_000, true, false);
        assert_eq!(woken.0.load(SeqCst), 1);
        assert_eq!(
            backlog.poll_room(false, cx),
            Poll::Ready(MOST_IF_TIGHT as usize - 10_000)
        );
        // More is held than tight memory allows, and then all of it is written.
        backlog.add(60_000, false);
        assert!(backlog.poll_room(false, cx).is_pending());
        backlog.is_flushed(200_000, false, false);
        assert_eq!(woken.0.load(SeqCst), 2);
        set_tight(false);
    }

    #[test]
    fn several_responses_have_less_room_and_none_is_read_for_unless_half_is_free() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let backlog = Backlog::default();
        let half = MOST_IF_SHARED / 2;
        backlog.add(half as usize, true);
        assert_eq!(backlog.poll_read(true, cx), Poll::Ready(()));
        backlog.add(1, true);
        assert!(backlog.is_full(true) && backlog.poll_read(true, cx).is_pending());
        // What was read already may take the rest.
        assert_eq!(backlog.poll_room(true, cx), Poll::Ready(half as usize - 1));
        // The last of them waits like the others.
        assert!(backlog.is_full(false));
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(half as usize - 1));
        backlog.is_flushed(1, true, false);
        assert_eq!(woken.0.load(SeqCst), 1);
        assert!(!backlog.is_full(true));
        // Then it has as much as any.
        backlog.is_flushed(2, false, false);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize));
    }

    #[test]
    fn nobody_waits_for_a_socket_that_is_gone() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let backlog = Backlog::default();
        backlog.add(MOST as usize, false);
        assert!(backlog.poll_room(false, cx).is_pending());
        backlog.is_gone();
        assert_eq!(woken.0.load(SeqCst), 1);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize));
    }

    #[test]
    fn heads_of_frames_are_forgotten_when_all_was_written() {
        let backlog = Backlog::default();
        let cx = &mut Context::from_waker(Waker::noop());
        for round in 1..=3 {
            backlog.add(MOST as usize, false);
            assert!(backlog.poll_room(false, cx).is_pending());
            backlog.is_flushed(round * (MOST + 900), false, false);
            assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize));
        }
    }
}
