//! The minimum data rate of clients.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::state::ConnectionState;
use crate::progress::{DataRate, Pace};

/// "Never", as far as a timer is concerned.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The pace at which a client reads responses.
///
/// A client is too slow if data waited for it at each look of a window, and less was sent in it than the minimum
/// rate. A response that waits for its destination never counts. An HTTP/1.1 connection looks whenever it waits. On
/// HTTP/2 this is about the socket, which is looked at every few seconds; each stream has its own check, because data
/// of one stream says nothing about another.
#[derive(Debug, Default)]
pub(crate) struct DownloadPace {
    /// The start of the current run of waiting, and the bytes written by then.
    run: Option<(Instant, u64)>,
}

impl DownloadPace {
    /// Ends the run: what follows is about another response.
    pub(crate) fn reset(&mut self) {
        self.run = None;
    }

    /// Returns the end of the window, if data waits for the client.
    #[inline]
    pub(crate) fn due(&mut self, state: &ConnectionState, rate: DataRate) -> Option<Instant> {
        if !waits(state) {
            self.run = None;
            return None;
        }
        let (since, _) = self.run(state);
        since.checked_add(rate.window)
    }

    #[cold]
    fn run(&mut self, state: &ConnectionState) -> (Instant, u64) {
        let begin = || (Instant::now(), state.written.load(Relaxed));
        *self.run.get_or_insert_with(begin)
    }

    pub(crate) fn is_too_slow(&mut self, state: &ConnectionState, rate: Option<DataRate>) -> bool {
        let Some(rate) = rate else { return false };
        if !waits(state) {
            // Nothing waits for the client, so its next window is a full one.
            self.run = None;
            return false;
        }
        let now = Instant::now();
        let written = state.written.load(Relaxed);
        let (since, before) = *self.run.get_or_insert((now, written));
        let elapsed = now - since;
        if elapsed < rate.window {
            return false;
        }
        if written - before < rate.least(elapsed) {
            return true;
        }
        self.run = Some((now, written));
        false
    }
}

/// Returns true if data waits for the client.
#[inline]
fn waits(state: &ConnectionState) -> bool {
    let is_unsent = state.is_http1() && state.unacknowledged.load(Relaxed) > 0;
    is_unsent || state.write_blocked.load(Relaxed)
}

/// The pace at which a client sends a body.
///
/// Only time in which the proxy waits for data counts; otherwise the destination is slow.
#[derive(Debug)]
pub(crate) struct UploadPace {
    pace: Pace,
    /// Armed late and seldom: it is looked at when it fires, not moved with every byte.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl UploadPace {
    pub(crate) fn new(rate: DataRate) -> Self {
        Self {
            pace: Pace::new(rate),
            alarm: None,
        }
    }

    /// Notes bytes that came.
    pub(crate) fn arrived(&mut self, bytes: u64) {
        self.pace.moved(bytes);
    }

    /// Polled while expected data is missing. Ready when the client had a whole window and sent too little.
    pub(crate) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(due) = self.pace.due() else {
                return Poll::Pending;
            };
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if alarm.as_mut().poll(cx).is_pending() {
                // It is never armed for later than `due`, which only moves on.
                return Poll::Pending;
            }
            let now = Instant::now();
            if now < due {
                alarm.as_mut().reset(due);
                continue;
            }
            if self.pace.is_too_slow() {
                return Poll::Ready(());
            }
            self.pace.renew(now);
        }
    }
}

pub(crate) fn after(moment: Instant, duration: Duration) -> Instant {
    moment.checked_add(duration).unwrap_or_else(|| moment + FAR)
}

/// ± 10 %.
pub(crate) fn spread(age: Duration) -> Duration {
    let factor = 0.9 + 0.2 * fastrand::f64();
    Duration::try_from_secs_f64(age.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
