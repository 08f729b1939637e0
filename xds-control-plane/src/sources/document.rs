//! Values that several documents have.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::json::ObjectReader;
use proxy_model::{Problem, Problems};

use super::fixed::PERIODS;
use crate::translate::Protocol;

/// A whole number in a range.
pub(crate) fn integer<T>(
    reader: &mut ObjectReader<'_, '_>,
    key: &'static str,
    range: RangeInclusive<T>,
) -> Option<T>
where
    T: TryFrom<i64> + Into<i64> + Copy + std::fmt::Display + PartialOrd,
{
    reader.integer(key, range)
}

/// A length of time, more than none and at most a day.
pub(crate) fn period(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<Duration> {
    let time = Duration::from(reader.time_span(key)?);
    if PERIODS.contains(&time) {
        return Some(time);
    }
    let message = "is more than none and at most a day";
    let problem = Problem::error(reader.pointer_to(key), "out_of_range", message);
    reader.problems().push(problem);
    None
}

/// Reads a required value.
pub(crate) fn required<'n, T>(
    reader: &mut ObjectReader<'n, '_>,
    key: &'static str,
    read: impl FnOnce(&mut ObjectReader<'n, '_>) -> Option<T>,
) -> Option<T> {
    if reader.peek(key).is_none() {
        let problem = Problem::error(
            reader.pointer_to(key),
            "missing",
            format!("`{key}` is missing"),
        );
        reader.problems().push(problem);
        reader.skip(key);
        return None;
    }
    read(reader)
}

/// A name, which has to be there: without spaces and control characters, since it becomes a part of names and domains.
pub(crate) fn name(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<Arc<str>> {
    const LONGEST: usize = 200;
    let text = required(reader, key, |reader| reader.text(key))?;
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let why = match &*text {
        "" => "is empty",
        text if text.len() > LONGEST => "has more than 200 bytes",
        text if text.contains(is_odd) => "has spaces or control characters",
        _ => return Some(text.into()),
    };
    let problem = Problem::error(
        reader.pointer_to(key),
        "invalid_name",
        format!("the name {why}"),
    );
    reader.problems().push(problem);
    None
}

/// `http`, `grpc`, and `tcp` where there may be that.
pub(crate) fn protocol(
    reader: &mut ObjectReader<'_, '_>,
    key: &'static str,
    may_be_tcp: bool,
) -> Option<Protocol> {
    let all = [
        ("http", Protocol::Http),
        ("grpc", Protocol::Grpc),
        ("tcp", Protocol::Tcp),
    ];
    let known = all.len() - usize::from(!may_be_tcp);
    reader.choice(key, all.get(..known).unwrap_or_default())
}

/// Reports names that are there twice.
pub(crate) fn unique<'n>(
    problems: &mut Problems,
    pointer: &str,
    names: impl Iterator<Item = &'n Arc<str>>,
) {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let message = format!("the name {name} is there twice");
            problems.push(Problem::error(pointer, "duplicate_name", message));
        }
    }
}
