use crate::cluster::Date;
use crate::hosting::Timestamp;

/// The text for a moment that has not occurred.
const NEVER: &str = "0001-01-01T00:00:00.000Z";

/// The date of moment 0 of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockStart(Date);

impl ClockStart {
    /// Creates an epoch that begins at this date.
    pub(crate) fn at(start: Date) -> Self {
        Self(start)
    }

    /// Returns the moment as ISO 8601 in UTC, with milliseconds.
    pub(crate) fn date(self, moment: Timestamp) -> String {
        self.0.plus(moment).to_string()
    }

    /// Returns the moment like [`date`](Self::date). `None` becomes the first day of the calendar.
    pub(crate) fn date_or_never(self, moment: Option<Timestamp>) -> String {
        moment.map_or_else(|| NEVER.to_owned(), |moment| self.date(moment))
    }
}
