//! Virtual time: moments and spans in whole milliseconds.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in virtual time: milliseconds since the node's (or the cluster's) clock began at [`Timestamp::ZERO`].
///
/// Its text is a number of seconds with its unit (`601s`, `50.625s`). In JSON and TOML it is written as a
/// number of seconds, and read as a number or as such a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

/// A length of virtual time in whole milliseconds, or [`Span::INFINITE`]. Read and written like a [`Timestamp`];
/// infinite is the text `infinite`. The units `ms`, `m` and `h` are accepted as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Timestamp {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// Creates the moment this number of milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Creates the moment this number of seconds after the start. Saturates at the last moment.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Returns the milliseconds since the start.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the moment `span` later. `None` if it never comes: the span is infinite, or the clock ends
    /// before.
    pub const fn after(self, span: Span) -> Option<Self> {
        if span.is_infinite() {
            return None;
        }
        match self.0.checked_add(span.0) {
            Some(millis) => Some(Self(millis)),
            None => None,
        }
    }

    /// Returns the time since `earlier`. Zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of no time.
    pub const ZERO: Self = Self(0);
    /// An infinite span. A wait for it never ends.
    pub const INFINITE: Self = Self(u64::MAX);

    /// Creates a span of milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Creates a span of seconds. Infinite on overflow.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Returns the milliseconds; [`u64::MAX`] for an infinite span.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns true if the span never ends.
    pub const fn is_infinite(self) -> bool {
        self.0 == u64::MAX
    }

    /// Returns the sum. Infinite on overflow.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns a multiple of the span. Infinite on overflow.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// Converts seconds, rounded to whole milliseconds (half away from zero). `None` if the number is
    /// negative or not a number. Infinite on overflow.
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        if secs.is_nan() || secs < 0.0 {
            return None;
        }
        // A float that is too large, or infinite, becomes `u64::MAX`, which means infinite.
        Some(Self((secs * 1000.0).round() as u64))
    }

    /// Parses `15`, `15s`, `0.5s`, `250ms`, `10m`, `1h` or `infinite`. A bare number counts seconds.
    ///
    /// # Errors
    ///
    /// A sentence with the expected format.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("infinite") {
            return Ok(Self::INFINITE);
        }
        let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let millis = match &trimmed[digits.len()..] {
            "ms" => 1.0,
            "" | "s" => 1000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return Err(expected(text)),
        };
        // `parse` alone would also accept `inf`, `nan` and a sign.
        if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(expected(text));
        }
        let number: f64 = digits.parse().map_err(|_| expected(text))?;
        Ok(Self((number * millis).round() as u64))
    }
}

fn expected(text: &str) -> String {
    format!(
        "`{text}` is no length of time; write for example 15, \"15s\", \"250ms\", \"10m\", \"1h\" or \"infinite\""
    )
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

fn write_seconds(millis: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (secs, rest) = (millis / 1000, millis % 1000);
    let text = if rest == 0 {
        format!("{secs}s")
    } else {
        let fraction = format!("{rest:03}");
        format!("{secs}.{}s", fraction.trim_end_matches('0'))
    };
    f.pad(&text)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.0, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_infinite() {
            return f.pad("infinite");
        }
        write_seconds(self.0, f)
    }
}

fn serialize_seconds<S: Serializer>(millis: u64, serializer: S) -> Result<S::Ok, S::Error> {
    if millis.is_multiple_of(1000) {
        serializer.serialize_u64(millis / 1000)
    } else {
        serializer.serialize_f64(millis as f64 / 1000.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_seconds(self.0, serializer)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_infinite() {
            return serializer.serialize_str("infinite");
        }
        serialize_seconds(self.0, serializer)
    }
}

struct Seconds;

impl Visitor<'_> for Seconds {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or a text such as \"15s\", \"250ms\", \"10m\", \"1h\" or \"infinite\"")
    }

    fn visit_u64<E: de::Error>(self, secs: u64) -> Result<Span, E> {
        Ok(Span::from_secs(secs))
    }

    fn visit_i64<E: de::Error>(self, secs: i64) -> Result<Span, E> {
        u64::try_from(secs)
            .map(Span::from_secs)
            .map_err(|_| E::custom(format_args!("a length of time cannot be negative: {secs}")))
    }

    fn visit_f64<E: de::Error>(self, secs: f64) -> Result<Span, E> {
        Span::from_secs_f64(secs)
            .ok_or_else(|| E::custom(format_args!("a length of time cannot be {secs}")))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        Span::parse(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Seconds)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let span = deserializer.deserialize_any(Seconds)?;
        if span.is_infinite() {
            return Err(de::Error::custom("a moment cannot be infinitely far"));
        }
        Ok(Self(span.0))
    }
}
