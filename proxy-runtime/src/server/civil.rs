//! Days of the calendar, without time zones.

use std::fmt;
#[cfg(any(feature = "tls", test))]
use std::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: i64 = 86_400;

/// A moment in UTC in the form of RFC 3339, to the millisecond.
pub(crate) struct Timestamp(pub(crate) SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing is logged before 1970.
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let (year, month, day) = date(seconds.div_euclid(SECONDS_PER_DAY));
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            second / 3600,
            second / 60 % 60,
            second % 60,
            since.subsec_millis()
        )
    }
}

/// A moment in seconds since 1970 in the form that HTTP prefers: RFC 9110 section 5.6.7.
pub(crate) fn http_date(seconds: u64) -> [u8; 29] {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (year, month, day) = date(days);
    let mut text = [b' '; 29];
    // 1970 began with a Thursday.
    text[..3].copy_from_slice(DAYS[days.rem_euclid(7) as usize].as_bytes());
    text[3] = b',';
    put_digits(&mut text[5..7], day.into());
    text[8..11].copy_from_slice(MONTHS[month as usize - 1].as_bytes());
    put_digits(&mut text[12..16], year);
    put_digits(&mut text[17..19], second / 3600);
    text[19] = b':';
    put_digits(&mut text[20..22], second / 60 % 60);
    text[22] = b':';
    put_digits(&mut text[23..25], second % 60);
    text[26..].copy_from_slice(b"GMT");
    text
}

/// Writes the last digits of `number`, as many as there is room for.
fn put_digits(room: &mut [u8], mut number: i64) {
    for place in room.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A moment given by its parts, in UTC. `None` where the parts name no moment after 1970.
#[cfg(feature = "tls")]
pub(crate) fn moment(year: i64, month: u32, day: u32, second_of_day: u64) -> Option<SystemTime> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = u64::try_from(days_since_epoch(year, month, day)).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(
        days * SECONDS_PER_DAY.unsigned_abs() + second_of_day,
    ))
}

/// The date of a day that is counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Counts in eras of 400 years that begin on a 1st of March, so that the leap day is the last of its year.
fn date(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// The opposite of [`date`].
#[cfg(feature = "tls")]
fn days_since_epoch(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
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
        let moment = UNIX_EPOCH + Duration::from_millis(7);
        assert_eq!(Timestamp(moment).to_string(), "1970-01-01T00:00:00.007Z");
    }

    #[test]
    fn moments_are_written_as_http_has_them() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds), text.as_bytes());
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn dates_and_days_are_opposites() {
        for days in (0..200_000).step_by(13) {
            let (year, month, day) = date(days);
            assert_eq!(days_since_epoch(year, month, day), days);
        }
        assert_eq!(moment(2026, 13, 1, 0), None);
        assert_eq!(moment(1969, 12, 31, 0), None);
    }
}
