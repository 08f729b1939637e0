//! What to do after a failed attempt.

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
    /// What the transport said, if there was no answer.
    pub(super) transport: Option<TransportErrorKind>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask the next gateway at once.
    Elsewhere,
    /// Ask again after this time; first go on to the next gateway, or not.
    Again { wait: Duration, elsewhere: bool },
    /// Nothing.
    GiveUp,
}

/// The attempts of one request.
///
/// Gateways that do not answer are gone through in rounds, with a wait between these: an outage of the network concerns
/// all of them. Answers count by themselves, over all gateways, so that a cluster that has too much to do is not asked more
/// often by those who know more of its gateways.
#[derive(Debug)]
pub(super) struct Attempts {
    /// Rounds over the gateways that are left after this one.
    rounds_left: u32,
    /// How many more answers may be errors.
    answers_left: usize,
    /// Gateways that have not been asked in this round.
    others: usize,
    gateways: usize,
    backoff: Backoff,
    /// How often there was a wait.
    waits: u32,
    failed_once: bool,
}

/// The longest wait between two attempts that nobody asked for.
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

    /// What to do after a failure. `random` is between 0 and 1.
    pub(super) fn after(&mut self, failure: &Failure, safety: Safety, random: f64) -> Step {
        let verdict = Verdict::of(failure);
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
        let again = match verdict.again {
            Again::Never => false,
            Again::Once => !std::mem::replace(&mut self.failed_once, true),
            Again::Often => true,
        };
        if verdict.elsewhere && self.others > 0 {
            self.others -= 1;
            return match verdict.may_pass {
                // What another gateway asked for, that one did not.
                true => Step::Again {
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
        Step::Again {
            wait: asked.map_or(wait, |asked| asked.max(wait)),
            elsewhere: verdict.elsewhere,
        }
    }

    fn wait(&mut self, random: f64) -> Duration {
        self.waits = self.waits.saturating_add(1);
        self.backoff.wait(self.waits, random)
    }
}

/// What a failure allows.
struct Verdict {
    never_sent: bool,
    /// Whether another gateway may do better.
    elsewhere: bool,
    /// Whether there was an answer, an error that may pass: then nobody is asked without a wait.
    may_pass: bool,
    again: Again,
}

enum Again {
    Never,
    Once,
    Often,
}

/// The gateway asks for fewer questions, and does not mean that they be put to its neighbour.
const TOO_MANY_REQUESTS: u16 = 429;

impl Verdict {
    fn of(failure: &Failure) -> Self {
        match failure.transport {
            Some(kind) => Self::of_transport(kind),
            None => Self::of_answer(&failure.error),
        }
    }

    fn of_transport(kind: TransportErrorKind) -> Self {
        use TransportErrorKind::{CertificateRefused, Connect, NotTls, Tls, TooLarge, Untrusted};
        let (never_sent, elsewhere, again) = match kind {
            Connect | Tls => (true, true, Again::Often),
            // Asking the same gateway again does not change what it is.
            Untrusted | NotTls => (true, true, Again::Never),
            // Another node may be configured otherwise.
            CertificateRefused => (false, true, Again::Never),
            TooLarge => (false, false, Again::Never),
            // Interrupted or timed out: the request may have been carried out.
            _ => (false, true, Again::Often),
        };
        Self {
            never_sent,
            elsewhere,
            may_pass: false,
            again,
        }
    }

    /// All gateways answer the same, unless something is wrong with one of them or with its node.
    fn of_answer(error: &CallError) -> Self {
        let (elsewhere, may_pass, again) = match error.kind() {
            CallErrorKind::Unreachable => (true, false, Again::Often),
            CallErrorKind::TimedOut | CallErrorKind::Busy => {
                let elsewhere = error.status() != Some(TOO_MANY_REQUESTS);
                (elsewhere, true, Again::Often)
            }
            CallErrorKind::Failed => (true, true, Again::Once),
            // It lets us not in, or is something else than a gateway.
            CallErrorKind::Denied | CallErrorKind::Malformed => (true, false, Again::Never),
            CallErrorKind::Gone | CallErrorKind::Rejected => (false, false, Again::Never),
        };
        Self {
            never_sent: false,
            elsewhere,
            may_pass,
            again,
        }
    }
}
