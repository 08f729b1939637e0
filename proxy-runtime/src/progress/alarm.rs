//! The timer of the task that a request is served in, for what waits there.
//!
//! To arm a timer for each request, and to disarm it a moment later, costs more than most of what a timer is for. A server's
//! connection has one timer that is armed already; who waits in its task asks to be polled by then, and looks at the clock
//! when that happens. Where there is no such task, or between it and who waits there is something with wakers of its own, it
//! takes a timer of its own.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, RawWakerVTable, Waker};

use tokio::time::Instant;

/// What one thread numbers those who ask by.
const NUMBERS: u64 = 1 << 40;

static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static SCOPE: Cell<Option<Scope>> = const { Cell::new(None) };
    static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) * NUMBERS);
}

/// A task that is polled at the moment, and has a timer.
#[derive(Clone, Copy)]
struct Scope {
    task: Task,
    asked: Option<TimerRequest>,
}

/// Who is woken by a waker.
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

/// What was asked for.
#[derive(Clone, Copy)]
struct TimerRequest {
    by: u64,
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "only the server's tasks have such timers")
    )]
    due: Instant,
}

/// The number of one who asks, from when it first does.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<u64>);

impl Ticket {
    /// Whether it was used.
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

/// Asks to be polled at `due`, if not sooner, in place of what was asked for with this ticket before. `false`: that will not
/// happen. To be asked anew with each poll.
pub(crate) fn ask(cx: &Context<'_>, ticket: &mut Ticket, due: Instant) -> bool {
    let Some(scope) = SCOPE.get() else {
        return false;
    };
    if !scope.task.is(Task::of(cx.waker())) {
        return false;
    }
    let by = ticket.number();
    // The timer is for one: what the others ask for would have to be kept as well.
    if scope.asked.is_some_and(|asked| asked.by != by) {
        return false;
    }
    let asked = Some(TimerRequest { by, due });
    SCOPE.set(Some(Scope { asked, ..scope }));
    true
}

/// What is asked of a task's timer.
#[cfg(feature = "server")]
#[derive(Default)]
pub(crate) struct Alarm(Option<TimerRequest>);

#[cfg(feature = "server")]
impl Alarm {
    /// Polls something that may ask.
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

    /// When to poll again, if that was asked for.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.map(|asked| asked.due)
    }

    /// It is polled again.
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
