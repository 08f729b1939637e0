//! Calendar dates of virtual time.

use std::fmt;
use std::time::SystemTime;

use jiff::SignedDuration;
use jiff::civil::DateTime;

use crate::hosting::Timestamp;

const AT_1970: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// Milliseconds from 1601, where the count of 100 ns steps of Service Fabric begins, to 1970.
const TO_1970: i64 = 11_644_473_600_000;

/// A date and time in UTC, with milliseconds. Its text is ISO 8601: `2026-01-01T00:00:30.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// Milliseconds since 1970.
    millis: i64,
}

impl Date {
    /// The beginning of 1970.
    pub(crate) const EPOCH: Self = Self { millis: 0 };

    /// Parses `2026-01-01T00:00:00Z`, optionally with a fraction of a second. `None` for any other format,
    /// and for years outside 1601 to 9999.
    pub fn parse(text: &str) -> Option<Self> {
        let in_form = |byte: u8| byte.is_ascii_digit() || b"-:.TZ".contains(&byte);
        if !text.bytes().all(in_form) {
            return None;
        }
        let time = DateTime::strptime("%Y-%m-%dT%H:%M:%S%.fZ", text).ok()?;
        if !(1601..=9999).contains(&time.year()) {
            return None;
        }
        let millis = i64::try_from(time.duration_since(AT_1970).as_millis()).ok()?;
        Some(Self { millis })
    }

    /// Returns the date of a moment, for a clock that began at `self`.
    #[must_use]
    pub fn plus(self, moment: Timestamp) -> Self {
        let passed = i64::try_from(moment.as_millis()).unwrap_or(i64::MAX);
        Self {
            millis: self.millis.saturating_add(passed),
        }
    }

    /// Milliseconds since 1970.
    pub fn unix_millis(self) -> i64 {
        self.millis
    }

    /// Converts a time of the system's clock.
    pub fn of(time: SystemTime) -> Self {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self { millis }
    }

    /// Steps of 100 ns since 1601, as Service Fabric numbers reports.
    pub fn ticks(self) -> i64 {
        self.millis.saturating_add(TO_1970).saturating_mul(10_000)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = SignedDuration::from_millis(self.millis);
        write!(f, "{:.3}Z", AT_1970.saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-01-01T00:00:00.000Z", 1_767_225_600_000),
            ("1601-01-01T00:00:00.000Z", -TO_1970),
        ] {
            let date = Date::parse(text).unwrap();
            assert_eq!(date.unix_millis(), millis, "{text}");
            assert_eq!(date.to_string(), text);
        }
        assert_eq!(Date::parse("1601-01-01T00:00:00Z").unwrap().ticks(), 0);
        assert_eq!(
            Date::parse("2026-01-01T00:00:00.5Z").unwrap().unix_millis() % 1000,
            500
        );
    }

    #[test]
    fn what_is_no_date_is_rejected() {
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "-026-01-01T00:00:00Z",
            "2026-01-01T00:00:00:00Z",
            "1500-01-01T00:00:00Z",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }

    #[test]
    fn moments_lie_on_the_calendar() {
        let start = Date::parse("2026-12-31T23:59:00Z").unwrap();
        assert_eq!(
            start.plus(Timestamp::from_secs(61)).to_string(),
            "2027-01-01T00:00:01.000Z"
        );
    }
}
