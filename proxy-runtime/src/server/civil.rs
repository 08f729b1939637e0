//! Formatting and conversion of UTC times.

use std::fmt;
use std::time::SystemTime;

#[cfg(any(feature = "tls", test))]
use jiff::civil::DateTime;

/// A time in the format of RFC 3339, with milliseconds.
pub(crate) struct Timestamp(pub(crate) SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time out of range must not cause a panic: it is logged as 1970.
        let moment = jiff::Timestamp::try_from(self.0).unwrap_or_default();
        write!(f, "{moment:.3}")
    }
}

/// The time of a date in UTC. `None` before 1970.
#[cfg(feature = "tls")]
pub(crate) fn moment(of: DateTime) -> Option<SystemTime> {
    const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    // `DateTime` has no time zone: certificates may be valid beyond the last time that jiff
    // converts between zones.
    let since = std::time::Duration::try_from(of.duration_since(EPOCH)).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn moments_are_written_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            let moment = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(Timestamp(moment).to_string(), text);
        }
        let moment = UNIX_EPOCH + Duration::from_nanos(7_999_999);
        assert_eq!(Timestamp(moment).to_string(), "1970-01-01T00:00:00.007Z");
    }

    #[cfg(feature = "tls")]
    #[test]
    fn dates_are_moments_from_1970_on() {
        let seconds = |year, month, day| {
            let moment = moment(DateTime::constant(year, month, day, 23, 59, 59, 0))?;
            Some(moment.duration_since(UNIX_EPOCH).unwrap().as_secs())
        };
        assert_eq!(seconds(1969, 12, 31), None);
        assert_eq!(seconds(2000, 2, 28), Some(951_782_399));
        assert_eq!(
            seconds(9999, 12, 31),
            Some(253_402_300_799),
            "a certificate without an end"
        );
    }
}
