//! Time spans.

use std::time::Duration;

use proxy_model::TimeSpan;

use crate::input::text;

/// Fuzzes a time span.
///
/// * A written time span is read as the same.
/// * The simplest forms have their plain meaning.
/// * A rejection includes a suggestion.
pub fn time_span(data: &[u8]) {
    let text = text(data);
    let parsed = text.parse::<TimeSpan>();
    match &parsed {
        Ok(span) => {
            assert!(*span <= TimeSpan::MAX);
            assert_eq!(span.to_string().parse(), Ok(*span));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.suggestion().is_empty()),
    }
    if let Some(expected) = seconds(&text) {
        let span = parsed.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(span.duration(), Duration::from_secs(expected), "{text:?}");
    }
    // A bare number is days in .NET and seconds to most people.
    assert!(
        text.is_empty()
            || !text.bytes().all(|b| b.is_ascii_digit())
            || text.parse::<TimeSpan>().is_err()
    );
}

/// The seconds of `hh:mm:ss`, or of a number with at most nine digits and one unit.
fn seconds(text: &str) -> Option<u64> {
    let number = |text: &str, limit: u64| {
        let plain = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        let number = plain.then(|| text.parse::<u64>().ok()).flatten()?;
        (number < limit).then_some(number)
    };
    if let [hours, minutes, seconds] = text.split(':').collect::<Vec<_>>()[..] {
        return Some(number(hours, 24)? * 3_600 + number(minutes, 60)? * 60 + number(seconds, 60)?);
    }
    let (unit, scale) = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        .into_iter()
        .find(|(unit, _)| text.ends_with(unit))?;
    Some(number(text.strip_suffix(unit)?, 10_000_000)? * scale)
}
