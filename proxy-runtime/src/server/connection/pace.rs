//! Whether the client keeps up where the proxy waits for it, and moments that are far away.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::state::ConnectionState;
use crate::server::limits::DataRate;

/// "Never", as far as a timer is concerned.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Whether the client takes what it is given.
///
/// The connection is looked at every few seconds. What counts is a run of looks at which something waited for the
/// client, that lasts for a window, and in which less went out than the rate asks for. A response that waits for its
/// destination never counts. On HTTP/2 this is about the socket: whether a client takes a stream is seen to there, since
/// what leaves for one stream says nothing about another.
#[derive(Debug, Default)]
pub(crate) struct DownloadPace {
    /// When the run began, and how much had been written by then.
    run: Option<(Instant, u64)>,
}

impl DownloadPace {
    /// Ends the run: what follows is about another response.
    pub(crate) fn reset(&mut self) {
        self.run = None;
    }

    pub(crate) fn is_too_slow(&mut self, state: &ConnectionState, rate: Option<DataRate>) -> bool {
        let Some(rate) = rate else { return false };
        let is_unsent = state.is_http1() && state.unacknowledged.load(Relaxed) > 0;
        let waits = is_unsent || state.write_blocked.load(Relaxed);
        if !waits {
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

/// How much a client moves while it is waited for.
///
/// A window is made of the time in which somebody waits for the client, and of no other.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: DataRate,
    /// Since when somebody waits.
    waiting_since: Option<Instant>,
    /// Time waited in this window, before `waiting_since`.
    waited: Duration,
    /// Bytes that moved in this window.
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(rate: DataRate) -> Self {
        Self {
            rate,
            waiting_since: None,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    #[cfg(feature = "http2")]
    pub(crate) fn rate(&self) -> DataRate {
        self.rate
    }

    /// Notes bytes that moved. Nobody waits until [`due`](Self::due) is asked for.
    pub(crate) fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Somebody waits: when the window is over if nothing moves. `None` is never.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        since.checked_add(self.rate.window.saturating_sub(self.waited))
    }

    /// Whether less has moved than a window must bring.
    pub(crate) fn is_too_slow(&self) -> bool {
        self.bytes < self.rate.least(self.rate.window)
    }

    /// Begins another window, in which somebody waits.
    pub(crate) fn renew(&mut self, now: Instant) {
        self.waiting_since = Some(now);
        self.waited = Duration::ZERO;
        self.bytes = 0;
    }
}

/// Whether the client sends the body that somebody waits for.
///
/// Time in which nobody asks for data does not count: then it is the destination that is slow.
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

    /// To be polled when nothing has come that is waited for: ready when the client had a whole window and did not use
    /// it.
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
