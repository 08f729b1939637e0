//! The part of a request that holds its partition key.

use std::borrow::Cow;
use std::fmt;

use http::HeaderName;

use super::KeyRejection;
use crate::head::RequestHead;
use crate::matching::{ParameterName, PathTemplate};

/// The part of a request that holds its partition key.
///
/// Shown as `the header x-tenant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeySource(Source);

#[derive(Clone, Debug)]
enum Source {
    Header(HeaderName),
    Query(ParameterName),
    /// The parameter at a position in the route's template.
    Route(PathTemplate, usize),
}

impl PartitionKeySource {
    pub(crate) fn header(name: HeaderName) -> Self {
        Self(Source::Header(name))
    }

    pub(crate) fn query_parameter(name: &str) -> Self {
        Self(Source::Query(ParameterName::new(name)))
    }

    /// Creates the source of a route parameter's value. `None` if the template has no such parameter.
    pub(crate) fn route_value(template: &PathTemplate, name: &str) -> Option<Self> {
        let index = template.parameter_index(name)?;
        Some(Self(Source::Route(template.clone(), index)))
    }

    /// Calls `look` with the key of a request and returns its result.
    ///
    /// A key may occur several times, in several lines of a header or several query parameters, if all are
    /// equal. Different keys are an error, since programs differ in which of them they use.
    ///
    /// # Errors
    ///
    /// Returns an error if the request has no key, an empty one, or several that differ.
    pub fn with_key<H: RequestHead + ?Sized, T>(
        &self,
        head: &H,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, KeyRejection> {
        match &self.0 {
            Source::Header(name) => in_header(head, name.as_str(), look),
            Source::Query(name) => look_at(in_query(head, name)?.as_bytes(), look),
            Source::Route(template, index) => template
                .with_value(head.path(), *index, |value| look_at(value.as_bytes(), look))
                .ok_or(KeyRejection::Missing)?,
        }
    }
}

fn look_at<T>(key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<T, KeyRejection> {
    if key.is_empty() {
        return Err(KeyRejection::Missing);
    }
    Ok(look(key))
}

fn in_header<H: RequestHead + ?Sized, T>(
    head: &H,
    name: &str,
    look: impl FnOnce(&[u8]) -> T,
) -> Result<T, KeyRejection> {
    let mut look = Some(look);
    let mut found = Err(KeyRejection::Missing);
    head.for_each_header(name, &mut |line| {
        if let Some(look) = look.take() {
            found = look_at(line, look);
            return true;
        }
        // A line is valid only during its call, so the first is read again. Only requests with several keys
        // pay for it.
        let mut is_equal = false;
        head.for_each_header(name, &mut |first| {
            is_equal = first == line;
            false
        });
        if !is_equal {
            found = Err(KeyRejection::Ambiguous);
        }
        is_equal
    });
    found
}

fn in_query<'h, H: RequestHead + ?Sized>(
    head: &'h H,
    name: &ParameterName,
) -> Result<Cow<'h, str>, KeyRejection> {
    let mut values = name.values(head.query().unwrap_or_default());
    let first = values.next().ok_or(KeyRejection::Missing)?;
    if values.all(|value| value == first) {
        Ok(first)
    } else {
        Err(KeyRejection::Ambiguous)
    }
}

impl fmt::Display for PartitionKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Header(name) => write!(f, "the header {name}"),
            Source::Query(name) => write!(f, "the query parameter {}", name.as_str()),
            Source::Route(template, index) => {
                let name = template.parameter_names().nth(*index).unwrap_or_default();
                write!(f, "the route value {name}")
            }
        }
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Header(one), Self::Header(two)) => one == two,
            (Self::Query(one), Self::Query(two)) => one == two,
            // The text of a template is all that there is to it.
            (Self::Route(one, index), Self::Route(two, other)) => {
                one.as_str() == two.as_str() && index == other
            }
            (Self::Header(_) | Self::Query(_) | Self::Route(..), _) => false,
        }
    }
}

impl Eq for Source {}
