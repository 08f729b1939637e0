//! The reason why no agent could be polled.

use std::io;
use std::sync::Arc;

use discovery_core::DiscoverError;
use discovery_core::text::with_causes;

use super::REJECTED;
use crate::client::{ClientError, ClientErrorKind};
use crate::options::KeyFileError;

/// The reason why an agent could not be polled. The message names the agent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

/// A failed connection of a custom dialer.
#[derive(Debug, thiserror::Error)]
#[error("serf agent {agent}: cannot be connected to")]
pub(super) struct DialError {
    pub(super) agent: Arc<str>,
    pub(super) source: io::Error,
}

impl Cause {
    /// Returns true if the failure lasts until an operator changes something.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Client(error) => matches!(
                error.kind(),
                ClientErrorKind::Denied | ClientErrorKind::Version
            ),
            Self::Dial(_) => false,
            Self::Key(_) => true,
        }
    }

    /// Returns true if the agent responded, and rejected the key or its absence.
    fn is_denied(&self) -> bool {
        matches!(self, Self::Client(error) if error.kind() == ClientErrorKind::Denied)
    }

    /// Returns a hint for the operator.
    fn advice(&self, has_key: bool) -> &'static str {
        match self {
            Self::Client(error) => advice(error.kind(), has_key),
            Self::Dial(_) => advice(ClientErrorKind::Unreachable, has_key),
            Self::Key(_) => "see that `AuthKeyFile` names a file that this process can read",
        }
    }
}

fn advice(kind: ClientErrorKind, has_key: bool) -> &'static str {
    match kind {
        ClientErrorKind::Unreachable => "see that the agent runs and that this is its `-rpc-addr`",
        ClientErrorKind::Denied if has_key => "see that the key is the agent's `rpc_auth`",
        ClientErrorKind::Denied => "set `AuthKey` or `AuthKeyFile` to the agent's `rpc_auth`",
        ClientErrorKind::TimedOut => "see whether the agent is stopped or overloaded",
        ClientErrorKind::Protocol | ClientErrorKind::Version => {
            "see that this is the RPC address of a Serf agent, not that of its gossip or of another program"
        }
        _ => "see the agent's log",
    }
}

/// The state of the alarm that waiting will not help.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    was_raised: bool,
}

impl Alarm {
    /// Returns the causes to log as an error after a failed cycle: those that last until an operator
    /// changes something, once.
    pub(super) fn raise<'c>(&mut self, causes: &'c [Cause]) -> Vec<&'c Cause> {
        let mut news: Vec<_> = causes.iter().filter(|cause| cause.is_permanent()).collect();
        if self.was_raised {
            news.clear();
        }
        self.was_raised |= !news.is_empty();
        news
    }

    /// Clears the alarm after a successful poll: later failures count as new.
    pub(super) fn clear(&mut self) {
        self.was_raised = false;
    }
}

/// Returns the error of a cycle in which agents failed one after the other: the agents, their failures and
/// a hint. With a key in a file no wait is requested: the file is checked soon, and an agent is polled only
/// after a change.
pub(super) fn error_of(mut causes: Vec<Cause>, has_key: bool, is_file: bool) -> DiscoverError {
    let is_permanent = causes.iter().all(Cause::is_permanent);
    let is_denied = causes.iter().all(Cause::is_denied);
    let new = |message: String| {
        let error = match is_permanent {
            true if is_denied => DiscoverError::rejected(message),
            true => DiscoverError::permanent(message),
            false => return DiscoverError::transient(message),
        };
        match is_file {
            true => error,
            false => error.with_retry_after(REJECTED),
        }
    };
    if causes.len() == 1
        && let Some(cause) = causes.pop()
    {
        let advice = cause.advice(has_key);
        let what = match is_denied {
            true => "rejects the connection",
            false => "does not answer",
        };
        return new(format!("the Serf agent {what}; {advice}")).with_source(cause);
    }
    let all: Vec<_> = causes
        .iter()
        .map(|cause| format!("{}; {}", with_causes(cause), cause.advice(has_key)))
        .collect();
    let agents = all.len();
    let what = if is_denied {
        "accepts the connection"
    } else {
        "answers"
    };
    new(format!(
        "none of the {agents} Serf agents {what}: {}",
        all.join(". ")
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::options::read_key;

    fn away() -> Cause {
        let source = io::ErrorKind::ConnectionRefused.into();
        let agent = "a:7373".into();
        Cause::Dial(DialError { agent, source })
    }

    fn no_key() -> Cause {
        Cause::Key(read_key(Path::new("/nowhere/key")).unwrap_err())
    }

    #[test]
    fn that_waiting_will_not_help_is_said_once() {
        let mut alarm = Alarm::default();
        let said = |alarm: &mut Alarm, causes: &[Cause]| alarm.raise(causes).len();
        assert_eq!(said(&mut alarm, &[away()]), 0);
        assert_eq!(said(&mut alarm, &[away(), no_key()]), 1);
        assert_eq!(said(&mut alarm, &[away(), no_key()]), 0);
        assert_eq!(said(&mut alarm, &[away()]), 0);
        assert_eq!(said(&mut alarm, &[no_key()]), 0);
        alarm.clear();
        assert_eq!(said(&mut alarm, &[no_key(), no_key()]), 2);
    }

    #[test]
    fn an_error_says_which_agent_what_happened_and_what_to_do() {
        let error = error_of(vec![away()], false, false);
        let message = "the Serf agent does not answer; see that the agent runs and that this is its `-rpc-addr`: \
            serf agent a:7373: cannot be connected to: connection refused";
        assert_eq!(error.chain(), message);
        let error = error_of(vec![away(), no_key()], false, false);
        let text = error.to_string();
        assert!(text.starts_with("none of the 2 Serf agents answers: serf agent a:7373: "));
        assert!(text.contains("/nowhere/key"), "{text}");
        assert!(error.retry_after().is_none(), "one of them may come back");
    }
}
