//! Drives one connection: the engine, and the clocks that the engine does not have.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::state::{ConnectionState, Ending};
use crate::observe::targets;
use crate::server::limits::{DataRate, Limits};
use crate::server::metrics::WorkerMetrics;
use crate::server::shared::{Mode, WorkerShared};

/// How long the engine is given to end a connection that it was told to end.
const CLOSING: Duration = Duration::from_secs(3);

/// How often a busy connection is looked at, at most.
const CHECK: Duration = Duration::from_secs(5);

/// "Never", as far as a timer is concerned.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// A connection of the engine, of either protocol.
pub(crate) trait Engine: Future<Output = hyper::Result<()>> {
    /// Ends the connection: at once if it is idle, else after what is in flight.
    fn shut_down(self: Pin<&mut Self>);
}

/// Serves the connection until it ends.
///
/// Cancel safe: dropped, it closes the connection.
pub(crate) async fn drive(engine: impl Engine, state: Arc<ConnectionState>) {
    let mut engine = std::pin::pin!(engine);
    let mut clock = Clock::new(&state);
    let mut mode = state.worker.watch_mode();
    let mut alarm = std::pin::pin!(sleep_until(clock.due()));
    loop {
        let armed = alarm.deadline();
        let served = poll_fn(|cx| {
            if let Poll::Ready(result) = engine.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            clock.look(&state);
            // The alarm goes off too early rather than being moved with every request.
            if clock.due() < armed || clock.has_news(&state) {
                return Poll::Ready(None);
            }
            Poll::Pending
        });
        tokio::select! {
            biased;
            ended = served => match ended {
                Some(result) => return log_end(&state, result),
                None => alarm.as_mut().reset(clock.due()),
            },
            changed = mode.changed() => {
                clock.mode_changed(&mut mode);
                if changed.is_err() {
                    return;
                }
            }
            () = alarm.as_mut() => match clock.expire(&state) {
                Verdict::Wait => {}
                Verdict::ShutDown => engine.as_mut().shut_down(),
                Verdict::Timeout => state.end_with(Ending::Timeout),
                Verdict::Drop => return,
            },
        }
        if clock.has_news(&state) {
            clock.is_announced = true;
            engine.as_mut().shut_down();
        }
        alarm.as_mut().reset(clock.due());
    }
}

fn log_end(state: &ConnectionState, result: hyper::Result<()>) {
    let Err(error) = result else { return };
    if state.ends_with_timeout() {
        return;
    }
    if error.is_parse() {
        WorkerMetrics::add(&state.metrics().malformed);
    }
    tracing::debug!(
        target: targets::SERVER,
        %error,
        remote = ?state.info.remote,
        "connection ended with an error"
    );
}

/// What to do when the time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    ShutDown,
    Timeout,
    Drop,
}

/// What the connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not said what it must say first.
    Opening,
    /// A part of a request's head is there.
    Head,
    /// Between requests.
    Idle,
    /// A request is being answered.
    Busy,
    /// The engine was told to end the connection.
    Closing,
}

/// When the connection is to be looked at next, and what is then to be found.
struct Clock {
    /// When it has lived for long enough, until that is known to all.
    retires: Option<Instant>,
    phase: Phase,
    since: Instant,
    requests: u64,
    mode: Mode,
    mode_since: Instant,
    is_announced: bool,
    pace: Pace,
    /// When a busy connection is looked at next.
    check: Instant,
    worker: Arc<WorkerShared>,
}

impl Clock {
    fn new(state: &ConnectionState) -> Self {
        let now = Instant::now();
        let age = state.worker.limits.connection_age;
        let mut clock = Self {
            retires: Some(after(state.accepted, spread(age))),
            phase: Phase::Opening,
            since: state.accepted,
            requests: 0,
            mode: Mode::Serving,
            mode_since: now,
            is_announced: false,
            pace: Pace::default(),
            check: after(now, CHECK),
            worker: state.worker.clone(),
        };
        clock.set_mode(state.worker.mode());
        clock
    }

    /// Looks at what the connection is doing, after the engine was polled.
    fn look(&mut self, state: &ConnectionState) {
        if self.phase == Phase::Closing {
            return;
        }
        let requests = state.requests.load(Relaxed);
        let phase = if state.is_busy() {
            Phase::Busy
        } else if state.head_begun.load(Relaxed) {
            Phase::Head
        } else if state.is_opened() {
            Phase::Idle
        } else {
            Phase::Opening
        };
        if phase != self.phase || (phase == Phase::Idle && requests != self.requests) {
            let now = Instant::now();
            // The time of the opening counts from the start, whether the client has begun or not.
            if !(self.phase == Phase::Opening && phase == Phase::Head) {
                self.since = now;
            }
            if phase == Phase::Busy {
                self.check = after(now, CHECK);
            }
            self.phase = phase;
            self.requests = requests;
        }
    }

    /// When the connection is to be looked at.
    fn due(&self) -> Instant {
        let due = self.phase_due();
        self.retires.map_or(due, |retires| due.min(retires))
    }

    fn phase_due(&self) -> Instant {
        match self.phase {
            Phase::Opening if self.is_leaving() => self
                .closing_due()
                .min(after(self.since, self.limits().header_timeout)),
            Phase::Opening | Phase::Head => after(self.since, self.limits().header_timeout),
            Phase::Idle if self.is_leaving() => self.closing_due(),
            Phase::Idle => after(self.since, self.limits().keep_alive),
            Phase::Busy => self.check,
            Phase::Closing => after(self.since, CLOSING),
        }
    }

    /// An idle connection is read from for a little longer: a request may be on its way.
    fn closing_due(&self) -> Instant {
        after(self.since.max(self.mode_since), self.limits().closing_grace)
    }

    fn limits(&self) -> &Limits {
        &self.worker.limits
    }

    fn is_leaving(&self) -> bool {
        self.mode != Mode::Serving
    }

    fn mode_changed(&mut self, mode: &mut watch::Receiver<Mode>) {
        self.set_mode(*mode.borrow_and_update());
    }

    fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.mode_since = Instant::now();
    }

    /// The alarm went off.
    fn expire(&mut self, state: &ConnectionState) -> Verdict {
        let now = Instant::now();
        if self.retires.take_if(|retires| now >= *retires).is_some() {
            state.retire();
        }
        if now < self.phase_due() {
            return Verdict::Wait;
        }
        if state.is_busy() {
            return self.check(state, now);
        }
        match self.phase {
            Phase::Opening | Phase::Idle => {
                if self.phase == Phase::Opening && !self.is_leaving() {
                    WorkerMetrics::add(&state.metrics().header_timeouts);
                }
                self.close(now);
                Verdict::ShutDown
            }
            Phase::Head => {
                WorkerMetrics::add(&state.metrics().header_timeouts);
                self.close(now);
                Verdict::Timeout
            }
            Phase::Busy => Verdict::Wait,
            // A client that keeps its side open does not keep the connection.
            Phase::Closing => Verdict::Drop,
        }
    }

    /// Looks at a connection on which requests are answered.
    fn check(&mut self, state: &ConnectionState, now: Instant) -> Verdict {
        match self.phase {
            Phase::Closing => self.since = now,
            _ => self.check = after(now, CHECK),
        }
        let rate = self.limits().data_rate;
        if !self.pace.is_too_slow(state, rate) {
            return Verdict::Wait;
        }
        WorkerMetrics::add(&state.metrics().slow_clients);
        state.abort.store(true, Relaxed);
        Verdict::Drop
    }

    fn close(&mut self, now: Instant) {
        self.phase = Phase::Closing;
        self.since = now;
    }

    /// Whether an HTTP/2 client is to be told that the connection ends, and has not been: GOAWAY says which requests are
    /// still served. HTTP/1 says it with the next response.
    fn has_news(&self, state: &ConnectionState) -> bool {
        !state.is_http1()
            && !self.is_announced
            && (self.mode == Mode::Draining || state.is_retiring())
    }
}

/// Whether the client takes what it is given.
///
/// The connection is looked at every few seconds. What counts is a run of looks at which something waited for the
/// client, that lasts for a window, and in which less went out than the rate asks for. A response that waits for its
/// destination never counts.
#[derive(Default)]
struct Pace {
    /// When the run began, and how much had been written by then.
    run: Option<(Instant, u64)>,
}

impl Pace {
    fn is_too_slow(&mut self, state: &ConnectionState, rate: Option<DataRate>) -> bool {
        let Some(rate) = rate else { return false };
        let waits = state.untaken.load(Relaxed) > 0 || state.write_blocked.load(Relaxed);
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

fn after(moment: Instant, duration: Duration) -> Instant {
    moment.checked_add(duration).unwrap_or_else(|| moment + FAR)
}

/// ± 10 %.
fn spread(age: Duration) -> Duration {
    let factor = 0.9 + 0.2 * fastrand::f64();
    Duration::try_from_secs_f64(age.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
