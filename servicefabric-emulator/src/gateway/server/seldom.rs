use std::time::Duration;

use tokio::time::Instant;

/// The time for which a message is suppressed.
const REST: Duration = Duration::from_secs(10);

/// A rate limit for log messages, so that an error that occurs a hundred times a second does not fill the
/// log.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    told: Option<Instant>,
}

impl Seldom {
    /// Returns true at first, and then once in ten seconds.
    pub(crate) fn tell(&mut self) -> bool {
        let now = Instant::now();
        let due = self
            .told
            .is_none_or(|told| now.duration_since(told) >= REST);
        if due {
            self.told = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_told_once_in_ten_seconds() {
        let mut seldom = Seldom::default();
        assert!(seldom.tell());
        assert!(!seldom.tell());
        tokio::time::advance(REST).await;
        assert!(seldom.tell());
        assert!(!seldom.tell());
    }
}
