//! The backlog of a connection: data that its streams have sent and its socket has not accepted
//! yet.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
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

/// Data of a connection that were passed to `h2` and may not have reached the socket, with the memory that they hold
/// beyond themselves, and the streams that wait for it. `is_shared`: several responses are in progress.
///
/// Used by one thread only, except by tunnels, which services may move to other threads.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    held: AtomicU32,
    /// True if data of several responses may be among it. The last one of them gets no more room than they had.
    is_shared: AtomicBool,
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

    /// Waits unless half of the room is free, so that there is enough for what a read from a destination brings: the
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

    /// Number of bytes that were passed on since everything was written.
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

    /// Records the memory that data of a stream hold beyond themselves, until everything is written.
    #[inline]
    pub(crate) fn hold_behind(&self, bytes: usize) {
        if bytes > 0 {
            self.held.fetch_add(bytes as u32, Relaxed);
        }
    }

    /// Records a flush of `h2`: everything was written unless the socket is full.
    ///
    /// A part that was written frees nothing: it may be that of a buffer whose rest waits, since `h2` writes a frame of
    /// one stream after that of another. What the system has taken meanwhile keeps the line busy.
    pub(super) fn is_flushed(&self, is_full: bool) {
        if is_full || self.held() == 0 {
            return;
        }
        self.held.store(0, Relaxed);
        self.is_shared.store(false, Relaxed);
        self.wake();
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

        backlog.is_flushed(true);
        assert_eq!(woken.0.load(SeqCst), 0, "a part of it does not count");
        assert!(backlog.poll_room(false, cx).is_pending());
        backlog.is_flushed(false);
        assert_eq!(woken.0.load(SeqCst), 1);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(MOST as usize));
        backlog.is_flushed(false);
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
        for _ in 0..6 {
            // The first one takes all of the room.
            backlog.add(MOST as usize, false);
            for number in turn {
                let waker = Waker::from(Arc::new(Stream(number, Arc::clone(&order))));
                let cx = &mut Context::from_waker(&waker);
                assert!(backlog.is_full(false) && backlog.poll_room(false, cx).is_pending());
            }
            backlog.is_flushed(false);
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
        backlog.is_flushed(true);
        assert_eq!(woken.0.load(SeqCst), 0);
        backlog.is_flushed(false);
        assert_eq!(woken.0.load(SeqCst), 1);
        let all = Poll::Ready(MOST_IF_TIGHT as usize);
        assert_eq!(backlog.poll_room(false, cx), all);
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
        // Memory behind the data takes room as well.
        backlog.hold_behind(half as usize - 2);
        assert_eq!(backlog.poll_room(false, cx), Poll::Ready(1));
        assert_eq!(woken.0.load(SeqCst), 0);
        // Then it has as much as any.
        backlog.is_flushed(false);
        assert_eq!(woken.0.load(SeqCst), 1);
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
}
