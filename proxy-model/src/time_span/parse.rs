//! The parser of a [`TimeSpan`].

use std::time::Duration;

use super::TimeSpan;

/// The reason why a text is not a [`TimeSpan`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseTimeSpanError {
    /// An empty text, or only white space.
    #[error("a length of time is empty")]
    Empty,
    /// A number without a unit.
    #[error("`{0}` has no unit: .NET reads a bare number as days")]
    NoUnit(String),
    /// A negative time.
    #[error("`{0}` is negative")]
    Negative(String),
    /// A part is larger than its place allows, `24:00:00`, or the whole is longer than [`TimeSpan::MAX`].
    #[error("`{0}` is out of range")]
    OutOfRange(String),
    /// Neither of the two formats.
    #[error("`{0}` is not a length of time")]
    Malformed(String),
}

impl ParseTimeSpanError {
    /// Returns the correction.
    pub fn suggestion(&self) -> String {
        match self {
            Self::NoUnit(number) => match number.parse::<u64>() {
                Ok(seconds) if TimeSpan::from_secs(seconds) < TimeSpan::MAX => {
                    let span = TimeSpan::from_secs(seconds);
                    format!("for seconds write `{seconds}s` or `{span}`")
                }
                _ => "add a unit, as in `5s`".to_owned(),
            },
            Self::OutOfRange(_) => {
                "hours go to 23, minutes and seconds to 59; a day is `1.00:00:00` or `24h`"
                    .to_owned()
            }
            Self::Empty | Self::Negative(_) | Self::Malformed(_) => {
                "write `15s`, `1m30s` or `00:00:15`".to_owned()
            }
        }
    }
}

/// Maximum length of a text. The longest useful one has about 30 characters.
const MAX_LENGTH: usize = 128;

pub(super) fn parse(text: &str) -> Result<TimeSpan, ParseTimeSpanError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(ParseTimeSpanError::Empty);
    }
    if trimmed.len() > MAX_LENGTH {
        let start: String = trimmed.chars().take(32).collect();
        return Err(ParseTimeSpanError::Malformed(format!("{start}…")));
    }
    let fault = match trimmed.strip_prefix('-') {
        Some(positive) if read(positive).is_ok() || is_number(positive) => ParseFault::Negative,
        Some(_) => ParseFault::Malformed,
        None => match read(trimmed) {
            Ok(span) => return Ok(span),
            Err(fault) => fault,
        },
    };
    let text = trimmed.to_owned();
    Err(match fault {
        ParseFault::NoUnit => ParseTimeSpanError::NoUnit(text),
        ParseFault::Negative => ParseTimeSpanError::Negative(text),
        ParseFault::OutOfRange => ParseTimeSpanError::OutOfRange(text),
        ParseFault::Malformed => ParseTimeSpanError::Malformed(text),
    })
}

enum ParseFault {
    NoUnit,
    Negative,
    OutOfRange,
    Malformed,
}

fn read(text: &str) -> Result<TimeSpan, ParseFault> {
    if is_number(text) {
        return Err(ParseFault::NoUnit);
    }
    if text.contains(':') {
        constant(text)
    } else {
        with_units(text)
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// `[d.]hh:mm[:ss[.fffffff]]`, where each number may lack its leading zeros.
fn constant(text: &str) -> Result<TimeSpan, ParseFault> {
    let (first, rest) = text.split_once(':').ok_or(ParseFault::Malformed)?;
    let (days, hours) = match first.split_once('.') {
        Some((days, hours)) => (digits(days)?, hours),
        None => (0, first),
    };
    let hours = below(digits(hours)?, 24)?;
    let (minutes, rest) = match rest.split_once(':') {
        Some((minutes, rest)) => (minutes, Some(rest)),
        None => (rest, None),
    };
    let minutes = below(digits(minutes)?, 60)?;
    let (seconds, nanos) = match rest {
        None => (0, 0),
        Some(rest) => match rest.split_once('.') {
            Some((seconds, fraction)) => (digits(seconds)?, nanoseconds(fraction, 7)?),
            None => (digits(rest)?, 0),
        },
    };
    let seconds = below(seconds, 60)?;
    let total = days
        .checked_mul(86_400)
        .and_then(|s| s.checked_add(hours * 3_600 + minutes * 60 + seconds))
        .ok_or(ParseFault::OutOfRange)?;
    bounded(Duration::new(total, nanos))
}

/// Numbers with units, each unit at most once and the larger before the smaller.
fn with_units(text: &str) -> Result<TimeSpan, ParseFault> {
    const UNITS: [(&str, u64); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("µs", 1_000),
    ];
    let mut total = Duration::ZERO;
    let mut smallest = u64::MAX;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or(ParseFault::Malformed)?;
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let (_, unit) = UNITS
            .into_iter()
            .find(|(unit, _)| *unit == name)
            .filter(|(_, unit)| *unit < smallest)
            .ok_or(ParseFault::Malformed)?;
        smallest = unit;
        total = total
            .checked_add(amount(number, unit)?)
            .ok_or(ParseFault::OutOfRange)?;
        rest = after.trim_start();
    }
    bounded(total)
}

/// Returns `number`, which may have a fraction, times a unit of this many nanoseconds.
fn amount(number: &str, unit: u64) -> Result<Duration, ParseFault> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, nanoseconds(fraction, 9)?),
        None => (number, 0),
    };
    let nanos = u128::from(digits(whole)?) * u128::from(unit)
        + u128::from(fraction) * u128::from(unit) / 1_000_000_000;
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| ParseFault::OutOfRange)?;
    let rest = u32::try_from(nanos % 1_000_000_000).map_err(|_| ParseFault::OutOfRange)?;
    Ok(Duration::new(seconds, rest))
}

fn digits(text: &str) -> Result<u64, ParseFault> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseFault::Malformed);
    }
    text.parse().map_err(|_| ParseFault::OutOfRange)
}

fn below(number: u64, limit: u64) -> Result<u64, ParseFault> {
    (number < limit)
        .then_some(number)
        .ok_or(ParseFault::OutOfRange)
}

/// The digits after a decimal point, as billionths.
fn nanoseconds(fraction: &str, most: usize) -> Result<u32, ParseFault> {
    if fraction.len() > most {
        return Err(ParseFault::Malformed);
    }
    let number = u32::try_from(digits(fraction)?).map_err(|_| ParseFault::OutOfRange)?;
    let missing = u32::try_from(9 - fraction.len()).map_err(|_| ParseFault::Malformed)?;
    Ok(number * 10_u32.pow(missing))
}

fn bounded(duration: Duration) -> Result<TimeSpan, ParseFault> {
    if duration > TimeSpan::MAX.duration() {
        return Err(ParseFault::OutOfRange);
    }
    Ok(TimeSpan::new(duration))
}
