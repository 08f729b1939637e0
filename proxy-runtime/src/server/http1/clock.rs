//! The timer of a connection.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::server::connection::{ConnectionState, DownloadPace, after, spread};
use crate::server::metrics::WorkerMetrics;

/// Interval at which a connection is woken whose response waits for its destination.
const CHECK: Duration = Duration::from_secs(5);

/// The single timer of a connection, shared by all of its waits.
///
/// It is armed at the first wait, and fires early rather than being moved: a wait whose deadline is
/// not earlier than the armed time costs one comparison. One task does all waiting of a connection;
/// the timer keeps its waker from the last arming.
#[derive(Debug)]
pub(crate) struct Clock {
    alarm: Option<Pin<Box<Sleep>>>,
    /// The time at which the connection reaches its maximum age, until then.
    retires: Option<Instant>,
    pace: DownloadPace,
    /// The next check of the client's data rate.
    check: Option<Instant>,
}

impl Clock {
    pub(crate) fn new(state: &ConnectionState) -> Self {
        let age = state.worker.limits.connection_age;
        Self {
            alarm: None,
            // Spread, so that connections opened together do not all close together.
            retires: Some(after(state.accepted, spread(age))),
            pace: DownloadPace::default(),
            check: None,
        }
    }

    /// Returns true if the connection has reached its maximum age. Updated when the timer fires.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.retires.is_none()
    }

    /// Ready once `deadline` has passed; otherwise the task is woken by then.
    #[inline]
    pub(crate) fn poll_due(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        // The maximum age of the connection may come first.
        let due = self
            .retires
            .map_or(deadline, |retires| deadline.min(retires));
        match &self.alarm {
            Some(alarm) if alarm.deadline() <= due && !alarm.is_elapsed() => Poll::Pending,
            _ => self.poll_alarm(cx, deadline),
        }
    }

    #[cold]
    fn poll_alarm(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            let now = Instant::now();
            let _ = self.retires.take_if(|retires| now >= *retires);
            if now >= deadline {
                return Poll::Ready(());
            }
            let due = self
                .retires
                .map_or(deadline, |retires| deadline.min(retires));
            let alarm = match &mut self.alarm {
                Some(alarm) => {
                    // Kept if it is right: moving a timer costs more than the check.
                    if alarm.deadline() != due || alarm.is_elapsed() {
                        alarm.as_mut().reset(due);
                    }
                    alarm
                }
                none => none.insert(Box::pin(sleep_until(due))),
            };
            // Unconstrained by the task budget: a pending poll must always register the waker.
            if pin!(unconstrained(alarm.as_mut())).poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Poll it whenever an exchange waits. Ready when the client has been too slow to receive its
    /// response; the connection must then be dropped, which the client sees as an error.
    pub(crate) fn poll_slow_reader(
        &mut self,
        cx: &mut Context<'_>,
        state: &ConnectionState,
    ) -> Poll<()> {
        let rate = state.worker.limits.data_rate;
        loop {
            if let Some(window) = rate.and_then(|rate| self.pace.due(state, rate)) {
                ready!(self.poll_due(cx, window));
                if self.pace.is_too_slow(state, rate) {
                    WorkerMetrics::add(&state.metrics().slow_clients);
                    // A plain close would make a truncated response look complete.
                    state.abort.store(true, Relaxed);
                    return Poll::Ready(());
                }
                continue;
            }
            // Nothing waits for the client now, so a look from time to time is enough.
            let check = *self
                .check
                .get_or_insert_with(|| after(Instant::now(), CHECK));
            ready!(self.poll_due(cx, check));
            self.check = Some(after(Instant::now(), CHECK));
        }
    }

    /// Starts the data rate of another response.
    #[inline]
    pub(super) fn begin_exchange(&mut self) {
        self.pace.reset();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use tokio::time::sleep;

    use super::*;
    use crate::ConnectionInfo;
    use crate::server::limits::Limits;
    use crate::server::shared::WorkerShared;

    fn state(limits: Limits) -> Arc<ConnectionState> {
        let worker = WorkerShared::new(limits, 1, Arc::default(), None);
        let info = ConnectionInfo::default();
        ConnectionState::new(Arc::new(worker), info, Instant::now())
    }

    async fn due(clock: &mut Clock, deadline: Instant) {
        poll_fn(|cx| clock.poll_due(cx, deadline)).await;
    }

    async fn is_due(clock: &mut Clock, deadline: Instant) -> bool {
        poll_fn(|cx| Poll::Ready(clock.poll_due(cx, deadline).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_armed_seldom_and_never_late() {
        let begin = Instant::now();
        let at = |secs| begin + Duration::from_secs(secs);
        let mut clock = Clock::new(&state(Limits::default()));
        assert!(!is_due(&mut clock, at(10)).await);
        for later in [20, 30, 40] {
            assert!(!is_due(&mut clock, at(later)).await);
            let armed = clock.alarm.as_ref().unwrap().deadline();
            assert_eq!(armed, at(10), "it is not moved");
        }
        due(&mut clock, at(40)).await;
        assert_eq!(Instant::now(), at(40));
        assert!(is_due(&mut clock, at(40)).await, "and stays due");
        due(&mut clock, at(60)).await;
        assert_eq!(Instant::now(), at(60));
        // Earlier than the armed time.
        assert!(!is_due(&mut clock, at(100)).await);
        due(&mut clock, at(70)).await;
        assert_eq!(Instant::now(), at(70));
    }

    #[tokio::test(start_paused = true)]
    async fn the_age_is_noticed_whatever_is_waited_for() {
        let limits = Limits {
            connection_age: Duration::from_secs(100),
            ..Limits::default()
        };
        let mut clock = Clock::new(&state(limits));
        let begin = Instant::now();
        due(&mut clock, begin + Duration::from_secs(80)).await;
        assert!(!clock.is_retired());
        due(&mut clock, begin + Duration::from_secs(120)).await;
        assert!(clock.is_retired());
        assert_eq!(begin.elapsed(), Duration::from_secs(120));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_is_slow_after_a_window_in_which_it_is_waited_for() {
        let state = state(Limits::default());
        let mut clock = Clock::new(&state);
        state.write_blocked.store(true, Relaxed);
        let begin = Instant::now();
        poll_fn(|cx| clock.poll_slow_reader(cx, &state)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(30));
        assert!(state.abort.load(Relaxed));

        // Another response: earlier rates do not count.
        clock.begin_exchange();
        sleep(Duration::from_secs(1000)).await;
        let begin = Instant::now();
        poll_fn(|cx| clock.poll_slow_reader(cx, &state)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(30));
    }
}
