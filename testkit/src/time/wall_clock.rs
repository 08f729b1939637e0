use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Awaits `future` for at most `limit` of real time, independent of tokio's clock.
///
/// # Errors
///
/// [`Elapsed`] at the limit; the future is then dropped.
///
/// Cancel safety: dropping the returned future drops `future`.
pub fn within<F: Future>(limit: Duration, future: F) -> WallClockTimeout<F> {
    WallClockTimeout {
        future: Box::pin(future),
        alarm: Alarm {
            due: Instant::now() + limit,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        },
        limit,
    }
}

/// The future of [`within`].
#[must_use = "futures do nothing unless awaited"]
pub struct WallClockTimeout<F> {
    future: Pin<Box<F>>,
    alarm: Alarm,
    limit: Duration,
}

impl<F: Future> Future for WallClockTimeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(output) = this.future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        if Instant::now() >= this.alarm.due {
            return Poll::Ready(Err(Elapsed { limit: this.limit }));
        }
        WATCH.set(&this.alarm, context.waker());
        Poll::Pending
    }
}

impl<F> Drop for WallClockTimeout<F> {
    fn drop(&mut self) {
        WATCH.clear(&self.alarm);
    }
}

impl<F> fmt::Debug for WallClockTimeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClockTimeout")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The error of [`within`]: the limit passed before the future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    limit: Duration,
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "still pending after {:?}", self.limit)
    }
}

impl std::error::Error for Elapsed {}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The watcher thread of the process. It sleeps until the earliest alarm, holds nothing of any
/// test, and ends with the process: a thread per guard would cost more than most guarded
/// operations.
static WATCH: LazyLock<&'static Watch> = LazyLock::new(|| {
    let watch: &'static Watch = Box::leak(Box::default());
    std::thread::Builder::new()
        .name("testkit-wall-clock".to_owned())
        .spawn(|| watch.run())
        .expect("a process that runs tests can start one more thread");
    watch
});

/// The time of a wake-up. The id makes equal times distinct.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alarm {
    due: Instant,
    id: u64,
}

#[derive(Default)]
struct Watch {
    alarms: Mutex<BTreeMap<Alarm, Waker>>,
    changed: Condvar,
}

impl Watch {
    fn set(&self, alarm: &Alarm, waker: &Waker) {
        let mut alarms = self.lock();
        let earliest = alarms
            .first_key_value()
            .is_none_or(|(first, _)| alarm < first);
        alarms.insert(*alarm, waker.clone());
        if earliest {
            self.changed.notify_one();
        }
    }

    fn clear(&self, alarm: &Alarm) {
        let removed = self.lock().remove(alarm);
        // Dropping a waker may run foreign code, so not under the lock.
        drop(removed);
    }

    fn run(&self) {
        let mut alarms = self.lock();
        loop {
            let Some(first) = alarms.first_key_value().map(|(alarm, _)| *alarm) else {
                self.changed.wait(&mut alarms);
                continue;
            };
            let left = first.due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waker = alarms.remove(&first);
                drop(alarms);
                if let Some(waker) = waker {
                    waker.wake();
                }
                alarms = self.lock();
            } else {
                self.changed.wait_for(&mut alarms, left);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Alarm, Waker>> {
        self.alarms.lock()
    }
}
