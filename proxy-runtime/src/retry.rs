//! The rule for when a request is retried. Every path calls [`Failed::verdict`], and nothing else decides.

use std::time::Duration;

use proxy_model::compiled::DestinationIndex;

/// Maximum number of attempts to get a first connection, and then the maximum to get a response, failed connections
/// included: one over an idle connection, one over a new connection to the same destination, and one to another
/// destination.
pub(crate) const MOST_ATTEMPTS: u8 = 3;

/// The connection of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// No connection could be opened, and the destination rejected it at once.
    None,
    /// One on which it was the first request.
    Fresh,
    /// A connection that had carried other requests, and that the destination may have closed just then.
    Reused,
}

/// The part of the request that the connection has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// No byte was sent.
    Nothing,
    /// Some or all bytes of the request, including bytes that TLS has accepted and perhaps not sent.
    Something,
}

/// The response bytes that arrived before the attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// No byte of a response: the connection was closed or reset.
    Nothing,
    /// The destination's word that it has not looked at the request (RFC 9113 section 8.7).
    Unprocessed,
    /// A part of a response, or an error other than a closed connection.
    #[cfg_attr(
        not(any(feature = "http2", test)),
        expect(dead_code, reason = "HTTP/2 tells what was processed")
    )]
    Something,
}

/// An attempt that brought no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) over: Over,
    pub(crate) sent: Sent,
    pub(crate) came: Came,
    /// True if the method is idempotent (RFC 9110 section 9.2.2).
    pub(crate) is_idempotent: bool,
    /// True if the whole request is still available to be sent.
    pub(crate) is_whole: bool,
}

/// The decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// The failure is the client's answer.
    GiveUp,
    /// A new connection to the same destination. If that cannot be opened, another destination.
    Same,
    /// A destination that was not tried yet.
    Other,
}

/// The attempts so far, first for a connection, then for a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    /// All of them, the current one included.
    count: u8,
    /// The number of attempts at the current destination.
    here: u8,
    /// The failed destinations, `failed_count` of them.
    failed: [DestinationIndex; MOST_ATTEMPTS as usize],
    failed_count: u8,
}

impl Failed {
    /// No connection could be opened, for a reason that may be the destination's own.
    pub(crate) const UNCONNECTED: Self = Self {
        over: Over::None,
        sent: Sent::Nothing,
        came: Came::Nothing,
        is_idempotent: false,
        is_whole: true,
    };

    /// Decides whether the request is sent again, and where. `left` is the time until its response must have begun,
    /// if there is such a time.
    pub(crate) fn verdict(self, attempts: &Attempts, left: Option<Duration>) -> RetryDecision {
        // RFC 9110 section 9.2.2: a request that may have been processed is repeated only if its method is idempotent.
        let is_harmless = match (self.sent, self.came) {
            (_, Came::Unprocessed) | (Sent::Nothing, Came::Nothing) => true,
            (Sent::Something, Came::Nothing) => self.is_idempotent,
            (_, Came::Something) => false,
        };
        // When no time is left, even a successful attempt would be too late for the client.
        if !is_harmless
            || !self.is_whole
            || attempts.count >= MOST_ATTEMPTS
            || left == Some(Duration::ZERO)
        {
            return RetryDecision::GiveUp;
        }
        // A closed idle connection and a refused stream say nothing about the destination.
        let is_of_connection = self.over == Over::Reused || self.came == Came::Unprocessed;
        match is_of_connection && self.over != Over::None && attempts.here == 1 {
            true => RetryDecision::Same,
            false => RetryDecision::Other,
        }
    }
}

impl Attempts {
    /// The first attempt.
    #[inline]
    pub(crate) const fn first() -> Self {
        Self {
            count: 1,
            here: 1,
            failed: [DestinationIndex(0); MOST_ATTEMPTS as usize],
            failed_count: 0,
        }
    }

    /// Another attempt at the same destination begins.
    pub(crate) fn stay(&mut self) {
        self.count = self.count.saturating_add(1);
        self.here = self.here.saturating_add(1);
    }

    /// An attempt at another destination begins.
    pub(crate) fn leave(&mut self) {
        self.count = self.count.saturating_add(1);
        self.here = 1;
    }

    /// Notes a destination that failed.
    pub(crate) fn failed(&mut self, destination: DestinationIndex) {
        // Never full: the verdict ends after `MOST_ATTEMPTS`, and each failed attempt adds one.
        if let Some(place) = self.failed.get_mut(usize::from(self.failed_count)) {
            *place = destination;
            self.failed_count += 1;
        }
    }

    /// The destinations that failed.
    pub(crate) fn tried(&self) -> &[DestinationIndex] {
        &self.failed[..usize::from(self.failed_count)]
    }
}

#[cfg(test)]
mod tests {
    use super::Over::{Fresh, Reused};
    use super::RetryDecision::{GiveUp, Other, Same};
    use super::*;

    const IDEMPOTENT: bool = true;
    const WHOLE: bool = true;

    fn after(count: u8, here: u8) -> Attempts {
        Attempts {
            count,
            here,
            ..Attempts::first()
        }
    }

    // docs/life-of-a-request.md, "What is sent again"
    #[test]
    fn each_failure_has_one_verdict() {
        use super::Came::{Nothing as Silent, Something as Begun, Unprocessed};
        use super::Sent::{Nothing as Unsent, Something as Begun_};
        for (over, sent, came, is_idempotent, is_whole, expected) in [
            // Without a connection no destination has the request.
            (Over::None, Unsent, Silent, false, WHOLE, Other),
            (Over::None, Unsent, Silent, IDEMPOTENT, WHOLE, Other),
            // Nothing was sent over it.
            (Reused, Unsent, Silent, false, WHOLE, Same),
            (Fresh, Unsent, Silent, false, WHOLE, Other),
            (Reused, Unsent, Silent, false, !WHOLE, GiveUp),
            // It was sent, and the connection was closed without an answer.
            (Reused, Begun_, Silent, IDEMPOTENT, WHOLE, Same),
            (Fresh, Begun_, Silent, IDEMPOTENT, WHOLE, Other),
            (Reused, Begun_, Silent, !IDEMPOTENT, WHOLE, GiveUp),
            (Fresh, Begun_, Silent, !IDEMPOTENT, WHOLE, GiveUp),
            (Reused, Begun_, Silent, IDEMPOTENT, !WHOLE, GiveUp),
            // The destination says that it has not looked at it.
            (Reused, Begun_, Unprocessed, !IDEMPOTENT, WHOLE, Same),
            (Fresh, Begun_, Unprocessed, !IDEMPOTENT, WHOLE, Same),
            (Fresh, Begun_, Unprocessed, IDEMPOTENT, !WHOLE, GiveUp),
            // It has answered something.
            (Reused, Begun_, Begun, IDEMPOTENT, WHOLE, GiveUp),
            (Reused, Unsent, Begun, IDEMPOTENT, WHOLE, GiveUp),
        ] {
            let failed = Failed {
                over,
                sent,
                came,
                is_idempotent,
                is_whole,
            };
            let verdict = |attempts, left| failed.verdict(&attempts, left);
            assert_eq!(verdict(Attempts::first(), None), expected, "{failed:?}");
            let some = Some(Duration::from_nanos(1));
            assert_eq!(verdict(Attempts::first(), some), expected, "{failed:?}");
            assert_eq!(
                verdict(Attempts::first(), Some(Duration::ZERO)),
                GiveUp,
                "{failed:?} when there is no time left"
            );
            assert_eq!(
                verdict(after(MOST_ATTEMPTS, 1), None),
                GiveUp,
                "{failed:?} the last time"
            );
            let again = match expected {
                Same => Other,
                other => other,
            };
            assert_eq!(verdict(after(2, 2), None), again, "{failed:?} again");
        }
    }

    #[test]
    fn what_failed_is_remembered() {
        let mut attempts = Attempts::first();
        assert_eq!(attempts.tried(), []);
        for index in [4, 2] {
            attempts.failed(DestinationIndex(index));
            attempts.leave();
        }
        assert_eq!(attempts.tried(), [4, 2].map(DestinationIndex));
        assert_eq!((attempts.count, attempts.here), (3, 1));
    }
}
