//! The wire format: errors, responses, versions, ids, arguments, times and pages.

mod answer;
mod arguments;
mod date;
mod duration;
mod error;
mod id;
mod page;
mod version;

#[cfg(test)]
mod tests;

pub(crate) use self::answer::Answer;
pub(crate) use self::arguments::Arguments;
pub(crate) use self::date::ClockStart;
pub(crate) use self::duration::{parse_duration, print_duration};
pub(crate) use self::error::ApiError;
pub(crate) use self::id::{id_of, parse_replica_id};
pub(crate) use self::page::{PageFaults, Paging};
pub(crate) use self::version::ApiVersion;

/// Returns a 64-bit number as a string, as the gateway writes it: a JavaScript number cannot hold it.
pub(crate) fn text(number: impl std::fmt::Display) -> String {
    number.to_string()
}
