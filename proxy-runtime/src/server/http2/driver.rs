//! The driver of an HTTP/2 connection: it polls the connection, and enforces the timeouts that `h2`
//! lacks.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use h2::Reason;
use tokio::time::{Instant, sleep_until};

use super::connection::{Accepted, Connection};
use super::streams::Ending;
use super::watch::Unfinished;
use crate::error::{Cause, Dropping};
use crate::observe::targets;
use crate::server::connection::{ConnectionState, DownloadPace, Transport, after, spread};
use crate::server::limits::Limits;
use crate::server::metrics::WorkerMetrics;
use crate::server::mode::{Mode, ModeWatch};

/// Time limit for `h2` to close a connection.
const CLOSING: Duration = Duration::from_secs(3);

/// Minimum interval between two checks of a busy connection.
const CHECK: Duration = Duration::from_secs(5);

/// Time of complete silence during a response, after which the client gets a ping.
const SILENCE: Duration = Duration::from_secs(60);

/// Time limit for the answer to that ping.
const PONG: Duration = Duration::from_secs(20);

/// Serves the connection until it ends.
///
/// Cancel safe: dropping the future closes the connection.
pub(super) async fn drive<T, S, F>(mut connection: Connection<T, S, F>, state: Arc<ConnectionState>)
where
    T: Transport,
    S: Fn(Accepted) -> F + Unpin,
    F: Future<Output = Ending>,
{
    let mut clock = NextDeadline::new(&state);
    let mut watch = None;
    let mut is_offered = false;
    let mut alarm = std::pin::pin!(sleep_until(clock.due()));
    let cause = loop {
        let armed = alarm.deadline();
        let served = poll_fn(|cx| {
            // The watch wakes the task when the mode changes.
            let watch = watch.get_or_insert_with(|| ModeWatch::new(&state.worker, cx.waker()));
            if let Poll::Ready(result) = Pin::new(&mut connection).poll(cx) {
                return Poll::Ready(Some(result));
            }
            if state.is_to_end_for_memory(cx.waker()) {
                return Poll::Ready(Some(Ok(())));
            }
            clock.look(connection.unfinished());
            // Only a connection without a complete request is evictable.
            match clock.has_no_request() {
                true if is_offered && watch.gives_way() => return Poll::Ready(Some(Ok(()))),
                true if is_offered => {}
                true => is_offered = state.worker.offer(watch, state.info.remote),
                false if is_offered => {
                    state.worker.withdraw(watch);
                    is_offered = false;
                }
                false => {}
            }
            // The timer fires early rather than being moved with every request.
            if clock.due() < armed || clock.has_news() {
                return Poll::Ready(None);
            }
            Poll::Pending
        });
        tokio::select! {
            biased;
            ended = served => match ended {
                Some(result) => {
                    log_end(&state, result);
                    break match state.is_shed() {
                        true => Cause::ClientMemory,
                        false => Cause::ClientGone,
                    };
                }
                None => alarm.as_mut().reset(clock.due()),
            },
            () = alarm.as_mut() => match clock.expire() {
                DeadlineAction::Wait => {}
                DeadlineAction::Ping => connection.ping(),
                DeadlineAction::ShutDown => connection.shut_down(),
                DeadlineAction::Unacknowledged => connection.end_now(Reason::SETTINGS_TIMEOUT),
                // Incomplete requests are lost: no other frame may arrive before the block is
                // complete.
                DeadlineAction::Unfinished => connection.end_now(Reason::NO_ERROR),
                DeadlineAction::Drop(cause) => break cause,
            },
        }
        if clock.has_news() {
            clock.is_announced = true;
            connection.shut_down();
        }
        alarm.as_mut().reset(clock.due());
    };
    // Requests that are in progress end with it.
    let _dropping = Dropping::because(cause);
    drop(connection);
}

fn log_end(state: &ConnectionState, result: Result<(), h2::Error>) {
    let Err(error) = result else { return };
    // Only errors that the server found in the client's input count, not errors that the client
    // reports.
    let is_rejected = !error.is_remote() && error.reason().is_some_and(is_fault_of_client);
    if (error.is_library() && !error.is_io()) || is_rejected {
        WorkerMetrics::add(&state.metrics().malformed);
    }
    tracing::debug!(
        target: targets::SERVER,
        %error,
        remote = ?state.info.remote,
        "connection ended with an error"
    );
}

/// Returns true if the reason is a fault of the client.
fn is_fault_of_client(reason: Reason) -> bool {
    [
        Reason::ENHANCE_YOUR_CALM,
        Reason::PROTOCOL_ERROR,
        Reason::COMPRESSION_ERROR,
        Reason::FRAME_SIZE_ERROR,
        Reason::FLOW_CONTROL_ERROR,
    ]
    .contains(&reason)
}

/// The action when a deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeadlineAction {
    Wait,
    Ping,
    ShutDown,
    /// The client has not acknowledged the server's settings.
    Unacknowledged,
    /// The client has not completed a header block.
    Unfinished,
    /// The connection ends at once, for this cause.
    Drop(Cause),
}

/// The activity of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not sent its preface yet.
    Opening,
    /// Between requests.
    Idle,
    /// A request is in progress.
    Busy,
    /// The server has begun to end the connection.
    Closing,
}

/// The next deadline of the connection, and its cause.
struct NextDeadline {
    state: Arc<ConnectionState>,
    /// The time at which the connection reaches its maximum age, until then.
    retires: Option<Instant>,
    /// The deadline for the acknowledgement of the settings (RFC 9113 section 6.5.3), until it
    /// arrives.
    acknowledges: Option<Instant>,
    /// The deadline for a frame that has arrived in part.
    completes: Option<Instant>,
    phase: Phase,
    since: Instant,
    requests: u64,
    mode: Mode,
    mode_since: Instant,
    is_announced: bool,
    pace: DownloadPace,
    silence: Silence,
    /// The next check of a busy connection.
    check: Instant,
}

impl NextDeadline {
    fn new(state: &Arc<ConnectionState>) -> Self {
        let now = Instant::now();
        let limits = &state.worker.limits;
        let age = limits.connection_age;
        Self {
            state: state.clone(),
            retires: Some(after(state.accepted, spread(age))),
            acknowledges: Some(after(now, limits.header_timeout)),
            completes: None,
            phase: Phase::Opening,
            since: state.accepted,
            requests: 0,
            mode: state.worker.mode(),
            mode_since: now,
            is_announced: false,
            pace: DownloadPace::default(),
            silence: Silence::new(now),
            check: after(now, CHECK),
        }
    }

    /// Updates the clock after the connection was polled.
    fn look(&mut self, unfinished: Option<Unfinished>) {
        self.completes = unfinished
            // An incomplete frame counts on an idle connection, or if it is of a header block. On a
            // busy one it may belong to an upload that pauses.
            .filter(|unfinished| unfinished.is_block || !self.state.is_busy())
            .map(|unfinished| after(unfinished.since, self.limits().header_timeout));
        let mode = self.state.worker.mode();
        if mode != self.mode {
            self.mode = mode;
            self.mode_since = Instant::now();
        }
        if self.acknowledges.is_some() && self.state.acknowledged.load(Relaxed) {
            self.acknowledges = None;
        }
        if self.phase == Phase::Closing {
            return;
        }
        let requests = self.state.requests.load(Relaxed);
        let phase = if !self.state.is_opened() {
            Phase::Opening
        } else if self.state.is_busy() {
            Phase::Busy
        } else {
            Phase::Idle
        };
        // A request that began and ended between two looks restarts the idle time.
        if phase != self.phase || (phase == Phase::Idle && requests != self.requests) {
            let now = Instant::now();
            self.since = now;
            if phase == Phase::Busy {
                self.check = after(now, CHECK);
            }
            self.phase = phase;
            self.requests = requests;
        }
    }

    /// Returns true if the connection has only an incomplete preface or request.
    fn has_no_request(&self) -> bool {
        match self.phase {
            Phase::Opening => true,
            Phase::Idle => self.completes.is_some(),
            Phase::Busy | Phase::Closing => false,
        }
    }

    /// The next deadline.
    fn due(&self) -> Instant {
        let others = [self.retires, self.acknowledges, self.completes];
        let due = self.phase_due();
        others.into_iter().flatten().fold(due, Instant::min)
    }

    fn phase_due(&self) -> Instant {
        match self.phase {
            Phase::Opening if self.is_leaving() => self
                .closing_due()
                .min(after(self.since, self.limits().header_timeout)),
            Phase::Opening => after(self.since, self.limits().header_timeout),
            Phase::Idle if self.is_leaving() => self.closing_due(),
            Phase::Idle => after(self.since, self.limits().keep_alive),
            Phase::Busy => self.check,
            Phase::Closing => after(self.since, self.closing()),
        }
    }

    /// The time limit for `h2` to close the connection. Where the server stops, that and the grace of an idle
    /// connection are no longer than for other incomplete requests.
    fn closing(&self) -> Duration {
        let limits = self.limits();
        match self.mode {
            Mode::Draining => CLOSING.min(limits.haste().saturating_sub(limits.closing_grace)),
            Mode::Serving | Mode::Full => CLOSING,
        }
    }

    /// The deadline for closing an idle connection: a request may be on its way.
    fn closing_due(&self) -> Instant {
        after(self.since.max(self.mode_since), self.limits().closing_grace)
    }

    fn limits(&self) -> &Limits {
        &self.state.worker.limits
    }

    fn is_leaving(&self) -> bool {
        self.mode != Mode::Serving || self.state.is_retiring()
    }

    /// Handles a timer that has fired.
    fn expire(&mut self) -> DeadlineAction {
        let now = Instant::now();
        if self.retires.take_if(|retires| now >= *retires).is_some() {
            self.state.retire();
        }
        let is_late = self.acknowledges.take_if(|due| now >= *due).is_some();
        // Before the preface the deadline of the phase applies instead.
        if is_late && self.phase != Phase::Opening {
            WorkerMetrics::add(&self.state.metrics().header_timeouts);
            self.phase = Phase::Closing;
            self.since = now;
            return DeadlineAction::Unacknowledged;
        }
        let is_late = self.completes.take_if(|due| now >= *due).is_some();
        if is_late && !matches!(self.phase, Phase::Opening | Phase::Closing) {
            WorkerMetrics::add(&self.state.metrics().header_timeouts);
            self.phase = Phase::Closing;
            self.since = now;
            return DeadlineAction::Unfinished;
        }
        if now < self.phase_due() {
            return DeadlineAction::Wait;
        }
        // Also in the phase `Closing`: its requests are still served.
        if self.phase != Phase::Opening && self.state.is_busy() {
            return self.check(now);
        }
        match self.phase {
            Phase::Opening | Phase::Idle => {
                if self.phase == Phase::Opening && !self.is_leaving() {
                    WorkerMetrics::add(&self.state.metrics().header_timeouts);
                }
                self.phase = Phase::Closing;
                self.since = now;
                DeadlineAction::ShutDown
            }
            Phase::Busy => DeadlineAction::Wait,
            // A client that keeps its side open does not keep the connection.
            Phase::Closing => DeadlineAction::Drop(Cause::ClientGone),
        }
    }

    /// Checks a connection with requests in progress.
    fn check(&mut self, now: Instant) -> DeadlineAction {
        match self.phase {
            // The closing deadline moves on while requests are in progress.
            Phase::Closing => self.since = now,
            _ => self.check = after(now, CHECK),
        }
        match self.silence.look(self.signs(), now) {
            Hearing::Recent => {}
            Hearing::Silent => return DeadlineAction::Ping,
            // Resets tunnels and streams of a client that is gone.
            Hearing::Dead => {
                self.state.abort.store(true, Relaxed);
                return DeadlineAction::Drop(Cause::ClientGone);
            }
        }
        let rate = self.limits().data_rate;
        if !self.pace.is_too_slow(&self.state, rate) {
            return DeadlineAction::Wait;
        }
        WorkerMetrics::add(&self.state.metrics().slow_clients);
        self.state.abort.store(true, Relaxed);
        DeadlineAction::Drop(Cause::ClientTooSlow)
    }

    /// A measure of the client's activity: bytes it sent, and bytes it received from a full socket.
    fn signs(&self) -> u64 {
        let read = self.state.read();
        // Progress of a full socket proves that the client reads.
        match self.state.write_blocked.load(Relaxed) {
            true => read + self.state.written.load(Relaxed),
            false => read,
        }
    }

    /// Returns true if the connection ends and GOAWAY was not sent yet, which names the requests
    /// that are still served.
    fn has_news(&self) -> bool {
        let has_to_leave = || match self.mode {
            Mode::Serving => false,
            // A client without requests since the change has the grace of an idle connection. One
            // with requests in progress stays: its client would open another connection, for which
            // there is no room until those requests have ended.
            Mode::Full => {
                self.phase == Phase::Idle && self.requests > 0 && self.since >= self.mode_since
            }
            Mode::Draining => true,
        };
        !self.is_announced
            && self.phase != Phase::Opening
            && (has_to_leave() || self.state.is_retiring())
    }
}

/// The last activity of the client.
struct Silence {
    signs: u64,
    since: Instant,
    was_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    Recent,
    /// The client should get a ping.
    Silent,
    /// The client has not answered the ping.
    Dead,
}

impl Silence {
    fn new(now: Instant) -> Self {
        Self {
            signs: 0,
            since: now,
            was_asked: false,
        }
    }

    /// `signs`: number of bytes received or delivered so far. Any change counts as an answer.
    fn look(&mut self, signs: u64, now: Instant) -> Hearing {
        if signs != self.signs {
            self.signs = signs;
            self.since = now;
            self.was_asked = false;
            return Hearing::Recent;
        }
        let silent = now.saturating_duration_since(self.since);
        if silent < SILENCE {
            return Hearing::Recent;
        }
        if !std::mem::replace(&mut self.was_asked, true) {
            // The time limit for the answer begins with the ping.
            self.since = now - SILENCE;
            return Hearing::Silent;
        }
        match silent < SILENCE + PONG {
            true => Hearing::Recent,
            false => Hearing::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_asked_once_and_then_given_up() {
        let begin = Instant::now();
        let at = |secs| begin + Duration::from_secs(secs);
        let mut silence = Silence::new(begin);
        assert_eq!(silence.look(10, at(5)), Hearing::Recent);
        assert_eq!(silence.look(10, at(60)), Hearing::Recent);
        assert_eq!(silence.look(10, at(65)), Hearing::Silent);
        assert_eq!(silence.look(10, at(70)), Hearing::Recent, "it has time");
        assert_eq!(silence.look(27, at(75)), Hearing::Recent, "it has answered");
        assert_eq!(silence.look(27, at(140)), Hearing::Silent);
        assert_eq!(silence.look(27, at(159)), Hearing::Recent);
        assert_eq!(silence.look(27, at(160)), Hearing::Dead);
    }
}
