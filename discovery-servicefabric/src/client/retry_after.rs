//! When the gateway, or what stands before it, wants to be asked again.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// More than a day is not believed.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The wait that `Retry-After` asks for (RFC 9110, section 10.2.3): seconds, or a time that is compared with the answer's
/// own `Date`, so that no clock has to be right.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let value = text(RETRY_AFTER)?;
    let seconds = if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that overflow are more than a day as well.
        value.parse().unwrap_or(u64::MAX)
    } else {
        let (then, now) = (seconds_of(value)?, seconds_of(text(DATE)?)?);
        u64::try_from(then - now).unwrap_or(0)
    };
    Some(Duration::from_secs(seconds).min(LONGEST))
}

/// Seconds of an `IMF-fixdate` since some day: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of(date: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut parts = date.split_once(", ")?.1.split(' ');
    let day: i64 = number(parts.next()?, 1..=31)?;
    let month = parts.next()?;
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()?;
    let year = number(parts.next()?, 0..=9999)?;
    let mut time = parts.next()?.split(':');
    let hours = number(time.next()?, 0..=23)?;
    let minutes = number(time.next()?, 0..=59)?;
    let seconds = number(time.next()?, 0..=60)?;
    if parts.next() != Some("GMT") || parts.next().is_some() || time.next().is_some() {
        return None;
    }
    // Years that begin in March, so that the leap day is the last one.
    let (year, month) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn number(text: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    range.contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wait(value: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_str(date).unwrap());
        }
        retry_after(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let cases = [
            ("0", None, Some(0)),
            (" 120 ", None, Some(120)),
            ("99999999999999999999999", None, Some(86_400)),
            ("-1", None, None),
            ("1.5", None, None),
            ("soon", now, None),
            ("Sun, 06 Nov 1994 08:49:47 GMT", now, Some(10)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", now, Some(0)),
            ("Mon, 07 Nov 1994 08:49:36 GMT", now, Some(86_399)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", None, None),
            ("Sun, 06 Nov 1994 08:49:47 CET", now, None),
            ("Sun, 06 Foo 1994 08:49:47 GMT", now, None),
            (
                "Tue, 01 Mar 2044 00:00:00 GMT",
                Some("Mon, 29 Feb 2044 23:59:58 GMT"),
                Some(2),
            ),
            (
                "Thu, 01 Jan 2026 00:00:01 GMT",
                Some("Wed, 31 Dec 2025 23:59:59 GMT"),
                Some(2),
            ),
            (
                "Mon, 01 Mar 2100 00:00:00 GMT",
                Some("Sun, 28 Feb 2100 23:59:59 GMT"),
                Some(1),
            ),
        ];
        for (value, date, expected) in cases {
            assert_eq!(wait(value, date), expected, "{value} at {date:?}");
        }
    }
}
