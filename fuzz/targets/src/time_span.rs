//! Lengths of time.

use std::time::Duration;

use proxy_model::TimeSpan;

use crate::input::text;

/// A length of time.
///
/// * What is written of one is read as the same.
/// * The plainest forms mean what they say.
/// * What is refused is refused with a suggestion.
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
    // A number alone is days to .NET and seconds to people.
    assert!(
        text.is_empty()
            || !text.bytes().all(|b| b.is_ascii_digit())
            || text.parse::<TimeSpan>().is_err()
    );
}

/// What the text means if it is `hh:mm:ss`, or a number of at most nine digits and one unit.
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
