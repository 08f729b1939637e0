//! Use of a connection's timer by the requests in its task.
//!
//! Setting and clearing a timer for each request is expensive. A server's connection has a timer that is set already,
//! so a future in its task asks to be polled at a time, and checks the clock then. Without such a task, or if a
//! combinator with its own wakers is in between, the future uses its own timer.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, RawWakerVTable, Waker};

use tokio::time::Instant;

/// The number of tickets that each thread may use.
const NUMBERS: u64 = 1 << 40;

static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static SCOPE: Cell<Option<Scope>> = const { Cell::new(None) };
    static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) * NUMBERS);
}

/// The task with a timer that this thread is polling.
#[derive(Clone, Copy)]
struct Scope {
    task: Task,
    asked: Option<TimerRequest>,
}

/// The identity of a task, as its waker shows it.
#[derive(Clone, Copy)]
struct Task {
    data: *const (),
    vtable: &'static RawWakerVTable,
}

impl Task {
    fn of(waker: &Waker) -> Self {
        Self {
            data: waker.data(),
            vtable: waker.vtable(),
        }
    }

    fn is(self, other: Self) -> bool {
        self.data == other.data && ptr::eq(self.vtable, other.vtable)
    }
}

/// A request to be polled at a time.
#[derive(Clone, Copy)]
struct TimerRequest {
    by: u64,
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "only the server's tasks have such timers")
    )]
    due: Instant,
}

/// The number of a future in the alarm, assigned at its first request.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<u64>);

impl Ticket {
    /// Returns true if it was used.
    pub(crate) fn is_used(&self) -> bool {
        self.0.is_some()
    }

    fn number(&mut self) -> u64 {
        *self.0.get_or_insert_with(|| {
            let next = NEXT.get();
            NEXT.set(next + 1);
            next
        })
    }
}

/// Asks the current task to poll the caller at `due` or earlier. Replaces the earlier request of this ticket. Returns
/// false if there is no such task; the caller then needs its own timer. Must be repeated in each poll.
pub(crate) fn ask(cx: &Context<'_>, ticket: &mut Ticket, due: Instant) -> bool {
    let Some(scope) = SCOPE.get() else {
        return false;
    };
    // A combinator with wakers of its own is not polled by the timer of the task.
    if !scope.task.is(Task::of(cx.waker())) {
        return false;
    }
    let by = ticket.number();
    // The timer serves one future at a time, so that no list of requests is needed.
    if scope.asked.is_some_and(|asked| asked.by != by) {
        return false;
    }
    let asked = Some(TimerRequest { by, due });
    SCOPE.set(Some(Scope { asked, ..scope }));
    true
}

/// The request to a task's timer.
#[cfg(feature = "server")]
#[derive(Default)]
pub(crate) struct Alarm(Option<TimerRequest>);

#[cfg(feature = "server")]
impl Alarm {
    /// Polls a future that may call [`ask`].
    pub(crate) fn watch<R>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        struct Within<'a> {
            alarm: &'a mut Alarm,
            around: Option<Scope>,
        }
        impl Drop for Within<'_> {
            fn drop(&mut self) {
                // In `drop`, so that a panic in the future leaves no scope behind.
                let scope = SCOPE.replace(self.around);
                self.alarm.0 = scope.and_then(|scope| scope.asked);
            }
        }
        let task = Task::of(cx.waker());
        let asked = self.0;
        let around = SCOPE.replace(Some(Scope { task, asked }));
        let _within = Within {
            alarm: self,
            around,
        };
        poll(cx)
    }

    /// The time at which the future must be polled again, if it requested one.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.map(|asked| asked.due)
    }

    /// Clears the request, because the future is polled now.
    pub(crate) fn rang(&mut self) {
        self.0 = None;
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;
    use std::time::Duration;

    use super::*;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    fn wakers() -> (Waker, Waker) {
        (Arc::new(Nobody).into(), Arc::new(Nobody).into())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_for_last_counts_until_it_rings() {
        let (waker, _) = wakers();
        let mut cx = Context::from_waker(&waker);
        let (mut alarm, mut ticket) = (Alarm::default(), Ticket::default());
        let soon = Instant::now() + Duration::from_secs(1);
        let later = soon + Duration::from_secs(1);
        assert!(!ask(&cx, &mut ticket, soon), "nobody would poll");
        assert_eq!(alarm.due(), None);
        for due in [soon, later] {
            assert!(alarm.watch(&mut cx, |cx| ask(cx, &mut ticket, due)));
            assert_eq!(alarm.due(), Some(due));
        }
        alarm.watch(&mut cx, |_| ());
        assert_eq!(alarm.due(), Some(later), "it was not polled");
        alarm.rang();
        assert_eq!(alarm.due(), None);
        assert!(!ask(&cx, &mut ticket, soon));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_for_one_who_waits_in_the_task_itself() {
        let (waker, other) = wakers();
        let mut cx = Context::from_waker(&waker);
        let due = Instant::now() + Duration::from_secs(1);
        let (mut alarm, mut inner) = (Alarm::default(), Alarm::default());
        let (mut first, mut second) = (Ticket::default(), Ticket::default());
        alarm.watch(&mut cx, |cx| {
            let mut elsewhere = Context::from_waker(&other);
            assert!(!ask(&elsewhere, &mut first, due), "it would not be woken");
            inner.watch(&mut elsewhere, |cx| assert!(ask(cx, &mut second, due)));
            assert!(ask(cx, &mut first, due));
            assert!(!ask(cx, &mut second, due));
        });
        assert_eq!((alarm.due(), inner.due()), (Some(due), Some(due)));
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let (waker, _) = wakers();
        let mut cx = Context::from_waker(&waker);
        let mut alarm = Alarm::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            alarm.watch(&mut cx, |_| panic!("on purpose"))
        }));
        assert!(panicked.is_err() && SCOPE.get().is_none());
    }
}
