//! Conditions on query parameters.

use std::borrow::Cow;

use super::criterion::{self, CriterionError};
use super::percent::{Part, decode};
use super::text::Pattern;
use crate::config::{QueryMatchMode as Mode, RouteQueryParameter};
use crate::head::RequestHead;

/// A condition on one query parameter, with the semantics of YARP.
///
/// Names and values are compared after decoding; `+` is a space. If the parameter occurs several times, one
/// value that satisfies the condition is enough; for `NotContains`, one that does not is enough to fail. A
/// parameter without a value counts as missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryMatcher {
    name: ParameterName,
    mode: Mode,
    values: Box<[Pattern]>,
}

impl QueryMatcher {
    /// Compiles a condition.
    ///
    /// # Errors
    ///
    /// Returns the first problem of the criterion.
    pub fn new(config: &RouteQueryParameter) -> Result<Self, CriterionError> {
        Self::compile(config).map_err(criterion::first)
    }

    /// Like [`new`](Self::new), but returns all errors.
    pub(crate) fn compile(config: &RouteQueryParameter) -> Result<Self, Vec<CriterionError>> {
        let name = match config.name.as_str() {
            "" => Err(CriterionError::NoName),
            name => Ok(ParameterName::new(name)),
        };
        let values = criterion::patterns(
            config.values.as_deref(),
            mode_name(config.mode),
            config.mode != Mode::Exists,
            config.is_case_sensitive,
        );
        let (name, values) = criterion::both(name, values)?;
        Ok(Self {
            name,
            mode: config.mode,
            values,
        })
    }

    /// The parameter's name, as written.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Text that is equal for equal conditions.
    pub(super) fn signature(&self) -> String {
        format!("{:?} {:?} {:?}", self.name.pattern, self.mode, self.values)
    }

    pub(super) fn mode_name(&self) -> &'static str {
        mode_name(self.mode)
    }

    pub(super) fn values(&self) -> &[Pattern] {
        &self.values
    }

    /// The comparison of values.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns true if a request meets the condition. Allocates only to decode the parameter's own name and
    /// values.
    pub fn matches<H: RequestHead + ?Sized>(&self, head: &H) -> bool {
        let compare = match self.mode {
            Mode::Exists => return self.any_value(head, |value| !value.is_empty()),
            Mode::Exact => Pattern::equals,
            Mode::Prefix => Pattern::begins,
            Mode::Contains | Mode::NotContains => Pattern::is_in,
        };
        let found = self.any_value(head, |value| {
            let value = decode(value, Part::Query);
            (self.values.iter()).any(|pattern| compare(pattern, value.as_bytes()))
        });
        found != (self.mode == Mode::NotContains)
    }

    /// Returns true if one of the parameter's values, still encoded, satisfies `wanted`.
    fn any_value<H: RequestHead + ?Sized>(
        &self,
        head: &H,
        wanted: impl FnMut(&str) -> bool,
    ) -> bool {
        let query = head.query().unwrap_or_default();
        self.name.encoded_values(query).any(wanted)
    }
}

/// The name of a query parameter, compared after decoding and ignoring case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ParameterName {
    pattern: Pattern,
    written: Box<str>,
}

impl ParameterName {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            pattern: Pattern::new(name, false),
            written: name.into(),
        }
    }

    /// The name as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }

    /// The values of all parameters of this name, decoded, `+` as a space. Allocates only to decode.
    pub(crate) fn values<'q>(&self, query: &'q str) -> impl Iterator<Item = Cow<'q, str>> {
        self.encoded_values(query)
            .map(|value| decode(value, Part::Query))
    }

    fn encoded_values<'q>(&self, query: &'q str) -> impl Iterator<Item = &'q str> {
        query.split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, Part::Query);
            self.pattern.equals(name.as_bytes()).then_some(value)
        })
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Exact => "Exact",
        Mode::Contains => "Contains",
        Mode::NotContains => "NotContains",
        Mode::Prefix => "Prefix",
        Mode::Exists => "Exists",
    }
}
