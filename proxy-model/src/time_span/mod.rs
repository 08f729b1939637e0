//! Lengths of time as configurations write them.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use self::parse::ParseTimeSpanError;

/// Nanoseconds in a tick, the unit in which .NET counts.
const TICK: u32 = 100;

/// A duration, as configurations write it.
///
/// Read from .NET's constant format `[d.]hh:mm[:ss[.fffffff]]` and from numbers with units: `250ms`, `15s`,
/// `1m30s`, `2h`, `1d`. A number without a unit is rejected, since .NET reads it as days and most people
/// mean seconds. A negative duration is rejected too. Written in .NET's format, so that YARP can read it.
///
/// Like .NET's type it counts in steps of 100 ns up to about 29,000 years.
///
/// ```
/// use std::time::Duration;
/// use proxy_model::TimeSpan;
///
/// let timeout: TimeSpan = "1m30s".parse()?;
/// assert_eq!(timeout.duration(), Duration::from_secs(90));
/// assert_eq!(timeout, "00:01:30".parse()?);
/// assert_eq!(timeout.to_string(), "00:01:30");
/// assert!("90".parse::<TimeSpan>().is_err());
/// # Ok::<(), proxy_model::ParseTimeSpanError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(Duration);

impl TimeSpan {
    /// A duration of zero.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The longest, `10675199.02:48:05.4775807`: what 63 bits of ticks hold.
    pub const MAX: Self = Self(Duration::new(922_337_203_685, 477_580_700));

    /// Creates a time span of `duration`, rounded down to a whole number of ticks and limited to
    /// [`MAX`](Self::MAX).
    pub const fn new(duration: Duration) -> Self {
        let nanos = duration.subsec_nanos() / TICK * TICK;
        if duration.as_secs() > Self::MAX.0.as_secs()
            || (duration.as_secs() == Self::MAX.0.as_secs() && nanos > Self::MAX.0.subsec_nanos())
        {
            return Self::MAX;
        }
        Self(Duration::new(duration.as_secs(), nanos))
    }

    /// Creates a time span from seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self::new(Duration::from_secs(seconds))
    }

    /// Creates a time span from milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self::new(Duration::from_millis(milliseconds))
    }

    /// Returns the time as a [`Duration`].
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Returns true if the time span is zero.
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl From<Duration> for TimeSpan {
    fn from(duration: Duration) -> Self {
        Self::new(duration)
    }
}

impl From<TimeSpan> for Duration {
    fn from(span: TimeSpan) -> Self {
        span.0
    }
}

impl FromStr for TimeSpan {
    type Err = ParseTimeSpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
        if days > 0 {
            write!(f, "{days}.")?;
        }
        write!(f, "{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60)?;
        match self.0.subsec_nanos() / TICK {
            0 => Ok(()),
            ticks => write!(f, ".{ticks:07}"),
        }
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = TimeSpan;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time such as `15s` or `00:00:15`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TimeSpan, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TimeSpan {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeSpan".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A length of time: `15s`, `1m30s`, `250ms`, or .NET's `[d.]hh:mm:ss[.fffffff]`.",
            "type": "string",
            "pattern": r"^\s*(([0-9]+\.)?[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{1,7})?)?|([0-9]+(\.[0-9]+)?\s*(d|h|m|s|ms|us|µs)\s*)+)\s*$",
            "examples": ["15s", "00:01:40"]
        })
    }
}
