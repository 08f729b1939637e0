//! The time to wait that the gateway, or a proxy before it, requests before a retry.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use httpdate::parse_http_date;

/// Maximum wait. Longer ones are shortened to it.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Returns the wait in `Retry-After` (RFC 9110, section 10.2.3): seconds, or a time that is compared with
/// the response's own `Date`, so that no clock has to be right.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let value = text(RETRY_AFTER)?;
    let seconds = if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that overflow are more than a day as well.
        value.parse().unwrap_or(u64::MAX)
    } else {
        let date = |text| parse_http_date(text).ok();
        let (then, now) = (date(value)?, date(text(DATE)?)?);
        then.duration_since(now).unwrap_or_default().as_secs()
    };
    Some(Duration::from_secs(seconds).min(LONGEST))
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
            ("Sun Nov  6 08:49:47 1994", now, Some(10)),
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
