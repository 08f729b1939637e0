//! Values of parameters.

use std::sync::Arc;

use crate::matching::text::equal_ignoring_case;

/// The values that a path has for the parameters of a template, in the template's order.
///
/// Names are compared ignoring case. Values are decoded text, except that `%2F` stays encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteValues(Vec<RouteValue>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RouteValue {
    name: Arc<str>,
    text: Box<str>,
    /// The value as the client encoded it, if it did. It keeps this encoding in another path.
    encoded: Option<Box<str>>,
}

impl RouteValue {
    pub(super) fn new(name: Arc<str>, text: &str) -> Self {
        Self {
            name,
            text: text.into(),
            encoded: None,
        }
    }

    /// Creates a value that came from a path, where it was `encoded`.
    pub(super) fn captured(name: Arc<str>, text: &str, encoded: &str) -> Self {
        Self {
            encoded: encoded.contains('%').then(|| encoded.into()),
            ..Self::new(name, text)
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn encoded(&self) -> Option<&str> {
        self.encoded.as_deref()
    }
}

impl RouteValues {
    /// Creates an empty list of values.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value called `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(RouteValue::text)
    }

    /// Sets the value of a name, replacing an earlier one.
    pub fn insert(&mut self, name: &str, value: &str) {
        let value = RouteValue::new(name.into(), value);
        match (self.0.iter_mut()).find(|other| equal_ignoring_case(&other.name, name)) {
            Some(other) => *other = value,
            None => self.0.push(value),
        }
    }

    /// Names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|value| (&*value.name, &*value.text))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(values: Vec<RouteValue>) -> Self {
        Self(values)
    }

    pub(super) fn find(&self, name: &str) -> Option<&RouteValue> {
        (self.0.iter()).find(|value| equal_ignoring_case(&value.name, name))
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for RouteValues {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(values: I) -> Self {
        let mut all = Self::new();
        for (name, value) in values {
            all.insert(name, value);
        }
        all
    }
}
