//! The time for which a node has not been ready.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::node::{Node, NodeDocument};

/// Converts a document to a node as of now.
pub(super) fn node_now(document: NodeDocument) -> Node {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let since = document
        .not_ready_since()
        .map(|since| since.and_then(seconds_since_epoch));
    let not_ready_for = match since {
        // If the clock is behind the cluster's, the node appears to have changed just now.
        Some(Some(then)) => now.saturating_sub(Duration::from_secs(then)),
        // The time is unknown, so it is taken for long ago.
        Some(None) => Duration::MAX,
        None => Duration::ZERO,
    };
    document.into_node(not_ready_for)
}

/// Parses a time of Kubernetes (RFC 3339 in UTC), `2026-01-02T03:04:05Z`, to seconds since 1970.
fn seconds_since_epoch(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let time = time.split('.').next()?;
    let mut time = time.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (time.next()??, time.next()??, time.next()??);
    let is_valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hours < 24
        && minutes < 60
        && seconds <= 60;
    if !is_valid {
        return None;
    }
    // Years that begin in March, so that the leap day is the last one.
    let (year, month) = if month < 3 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    // Days from 1 March of year 0 to 1 January 1970, plus one because days of a month begin with one.
    let days = days.checked_sub(719_469)?;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

/// Returns a time in Kubernetes' form, from the seconds since 1970.
#[cfg(feature = "kube")]
pub(super) fn text_of_seconds(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, so that the leap day is the last one; 146,097 days in 400 of them.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "kube")]
    #[test]
    fn times_are_written_as_they_are_read() {
        assert_eq!(text_of_seconds(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(text_of_seconds(1_709_251_199), "2024-02-29T23:59:59Z");
        for day in 0..80_000u64 {
            let seconds = day * 86_400 + day % 86_400;
            let text = text_of_seconds(seconds);
            assert_eq!(seconds_since_epoch(&text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn times_of_kubernetes_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-03-01T00:00:00Z", Some(951_868_800)),
            ("2024-02-29T23:59:59Z", Some(1_709_251_199)),
            ("2026-11-22T14:20:05Z", Some(1_795_357_205)),
            ("2026-11-22T14:20:05.123456Z", Some(1_795_357_205)),
            ("2026-11-22T14:20:05+01:00", None),
            ("2026-13-22T14:20:05Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(seconds_since_epoch(text), expected, "{text}");
        }
    }
}
