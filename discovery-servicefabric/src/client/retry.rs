//! The step after a failed attempt.

use std::time::Duration;

use discovery_core::Backoff;

use super::TransportErrorKind;
use super::options::ClientOptions;
use super::request::Safety;
use crate::calls::{CallError, CallErrorKind};

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: CallError,
    /// The kind of transport error, if there was no response.
    pub(super) transport: Option<TransportErrorKind>,
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Retry at the next gateway at once.
    Elsewhere,
    /// Retry after this time, at the next gateway if `elsewhere`.
    Retry { wait: Duration, elsewhere: bool },
    /// No retry.
    GiveUp,
}

/// The attempts of one request.
///
/// Gateways that do not respond are tried in rounds, with a wait between the rounds, since a network outage
/// concerns all of them. Responses are counted separately, over all gateways, so that an overloaded cluster
/// does not get more requests from clients that know more of its gateways.
#[derive(Debug)]
pub(super) struct Attempts {
    /// Number of rounds over the gateways after this one.
    rounds_left: u32,
    /// Number of further error responses that are allowed.
    answers_left: usize,
    /// Number of gateways that have not been tried in this round.
    others: usize,
    gateways: usize,
    backoff: Backoff,
    /// Number of waits so far.
    waits: u32,
    failed_once: bool,
}

/// The longest wait between two attempts, unless the gateway requested a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Attempts {
    pub(super) fn new(options: &ClientOptions, gateways: usize) -> Self {
        let attempts = usize::try_from(options.attempts).unwrap_or(usize::MAX);
        Self {
            rounds_left: options.attempts - 1,
            answers_left: attempts.max(gateways) - 1,
            others: gateways - 1,
            gateways,
            backoff: Backoff::new(options.backoff, LONGEST_WAIT.max(options.backoff)),
            waits: 0,
            failed_once: false,
        }
    }

    /// Returns the step after a failure. `random` is between 0 and 1.
    pub(super) fn after(&mut self, failure: &Failure, safety: Safety, random: f64) -> Step {
        let verdict = RetryRules::of(failure);
        let may_repeat = safety == Safety::Reads || verdict.never_sent;
        if !may_repeat {
            return Step::GiveUp;
        }
        if verdict.may_pass {
            let Some(left) = self.answers_left.checked_sub(1) else {
                return Step::GiveUp;
            };
            self.answers_left = left;
        }
        let again = match verdict.limit {
            RetryLimit::Never => false,
            RetryLimit::Once => !std::mem::replace(&mut self.failed_once, true),
            RetryLimit::Often => true,
        };
        if verdict.elsewhere && self.others > 0 {
            self.others -= 1;
            return match verdict.may_pass {
                // The wait that another gateway requested does not apply to this one.
                true => Step::Retry {
                    wait: self.wait(random),
                    elsewhere: true,
                },
                false => Step::Elsewhere,
            };
        }
        if !again || safety == Safety::Writes || self.rounds_left == 0 {
            return Step::GiveUp;
        }
        self.rounds_left -= 1;
        self.others = self.gateways - 1;
        let wait = self.wait(random);
        let asked = failure.error.retry_after();
        Step::Retry {
            wait: asked.map_or(wait, |asked| asked.max(wait)),
            elsewhere: verdict.elsewhere,
        }
    }

    fn wait(&mut self, random: f64) -> Duration {
        self.waits = self.waits.saturating_add(1);
        self.backoff.wait(self.waits, random)
    }
}

/// The retries that a failure allows.
struct RetryRules {
    never_sent: bool,
    /// True if another gateway may succeed.
    elsewhere: bool,
    /// True if the response was an error that may pass. The next attempt, at any gateway, is then made only
    /// after a wait.
    may_pass: bool,
    limit: RetryLimit,
}

enum RetryLimit {
    Never,
    Once,
    Often,
}

impl RetryRules {
    fn of(failure: &Failure) -> Self {
        match failure.transport {
            Some(kind) => Self::of_transport(kind),
            None => Self::of_answer(&failure.error),
        }
    }

    fn of_transport(kind: TransportErrorKind) -> Self {
        use TransportErrorKind::{CertificateRejected, Connect, NotTls, Tls, TooLarge, Untrusted};
        let (never_sent, elsewhere, limit) = match kind {
            Connect | Tls => (true, true, RetryLimit::Often),
            // Asking the same gateway again does not change what it is.
            Untrusted | NotTls => (true, true, RetryLimit::Never),
            // Another node may be configured otherwise.
            CertificateRejected => (false, true, RetryLimit::Never),
            TooLarge => (false, false, RetryLimit::Never),
            // Interrupted or timed out: the request may have been carried out.
            _ => (false, true, RetryLimit::Often),
        };
        Self {
            never_sent,
            elsewhere,
            may_pass: false,
            limit,
        }
    }

    /// Returns the verdict on an error response. All gateways return the same, unless one of them or its
    /// node has a fault.
    fn of_answer(error: &CallError) -> Self {
        let (elsewhere, may_pass, limit) = match error.kind() {
            CallErrorKind::Unreachable => (true, false, RetryLimit::Often),
            CallErrorKind::TimedOut | CallErrorKind::Busy => (true, true, RetryLimit::Often),
            CallErrorKind::Failed => (true, true, RetryLimit::Once),
            // It lets us not in, or is something else than a gateway.
            CallErrorKind::Denied | CallErrorKind::Malformed => (true, false, RetryLimit::Never),
            CallErrorKind::Gone | CallErrorKind::Rejected => (false, false, RetryLimit::Never),
        };
        Self {
            never_sent: false,
            elsewhere,
            may_pass,
            limit,
        }
    }
}
