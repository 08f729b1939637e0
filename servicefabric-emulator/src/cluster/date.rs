//! Dates: where virtual time lies on the calendar.

use std::fmt;

use crate::hosting::Moment;

const MILLIS_OF_DAY: i64 = 86_400_000;
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

    /// Reads `2026-01-01T00:00:00Z`, also with a fraction of a second; `None` for anything else, and for years outside
    /// of 1601 to 9999.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z')?;
        let (date, time) = text.split_once('T')?;
        let mut date = date.split('-').map(number);
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut clock = clock.split(':').map(number);
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
        let rest = date.next().is_some() || clock.next().is_some();
        let in_range = (1601..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if rest || !in_range {
            return None;
        }
        let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
        let seconds = (hour * 60 + minute) * 60 + second;
        let millis =
            days_from_civil(year, month, day) * MILLIS_OF_DAY + seconds * 1000 + number(&fraction)?;
        Some(Self { millis })
    }

    /// The date of a moment, when the clock began at `self`.
    #[must_use]
    pub fn plus(self, moment: Moment) -> Self {
        let passed = i64::try_from(moment.as_millis()).unwrap_or(i64::MAX);
        Self {
            millis: self.millis.saturating_add(passed),
        }
    }

    /// Milliseconds since 1970.
    pub fn unix_millis(self) -> i64 {
        self.millis
    }

    /// Steps of 100 ns since 1601, as Service Fabric numbers reports.
    pub fn ticks(self) -> i64 {
        self.millis.saturating_add(TO_1970).saturating_mul(10_000)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.millis.div_euclid(MILLIS_OF_DAY));
        let rest = self.millis.rem_euclid(MILLIS_OF_DAY);
        let (seconds, millis) = (rest / 1000, rest % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

/// Reads digits alone: no sign, no more than nine.
fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date of the Gregorian calendar. Years begin in March here, so that the leap day is their last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that lies so many days after 1970: year, month and day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year + i64::from(month <= 2), month, day)
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
    fn what_is_no_date_is_refused() {
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
            start.plus(Moment::from_secs(61)).to_string(),
            "2027-01-01T00:00:01.000Z"
        );
    }
}
