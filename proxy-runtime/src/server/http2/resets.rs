//! The limit of resets by a client.

use std::time::Duration;

use tokio::time::Instant;

use crate::server::limits::Http2Limits;

const SECOND: Duration = Duration::from_secs(1);

/// Counts the streams that a client has reset before the end of their responses.
///
/// `h2` counts only streams that were not accepted yet. The others have been routed and forwarded,
/// and each has cost its destination a connection (CVE-2023-44487).
#[derive(Debug)]
pub(super) struct Resets {
    per_second: u32,
    per_connection: u32,
    total: u32,
    /// The start of the current second, and the number of resets in it.
    second: Option<(Instant, u32)>,
}

impl Resets {
    pub(super) fn new(limits: &Http2Limits) -> Self {
        Self {
            per_second: limits.resets_per_second,
            per_connection: limits.resets_per_connection,
            total: 0,
            second: None,
        }
    }

    /// Counts resets. Returns true if there are too many.
    pub(super) fn add(&mut self, count: u32, now: Instant) -> bool {
        self.total = self.total.saturating_add(count);
        let lately = match self.second {
            Some((began, lately)) if now < began + SECOND => {
                let lately = lately.saturating_add(count);
                self.second = Some((began, lately));
                lately
            }
            _ => {
                self.second = Some((now, count));
                count
            }
        };
        lately > self.per_second || self.total > self.per_connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resets(per_second: u32, per_connection: u32) -> Resets {
        let limits = Http2Limits {
            resets_per_second: per_second,
            resets_per_connection: per_connection,
            ..Http2Limits::default()
        };
        Resets::new(&limits)
    }

    #[test]
    fn a_second_has_so_many_and_the_next_as_many_again() {
        let begin = Instant::now();
        let mut resets = resets(3, 100);
        assert!(!resets.add(2, begin));
        assert!(!resets.add(1, begin + SECOND / 2));
        assert!(!resets.add(3, begin + SECOND));
        assert!(resets.add(1, begin + SECOND * 3 / 2));
    }

    #[test]
    fn a_connection_has_so_many_however_long_it_takes() {
        let begin = Instant::now();
        let mut resets = resets(3, 5);
        for number in 0..5 {
            assert!(!resets.add(1, begin + SECOND * 10 * number));
        }
        assert!(resets.add(1, begin + SECOND * 60));
    }
}
