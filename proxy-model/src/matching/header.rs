//! Conditions on headers.

use http::HeaderName;

use super::criterion::{self, CriterionError};
use super::text::Pattern;
use crate::config::{HeaderMatchMode as Mode, RouteHeader};
use crate::head::RequestHead;

/// A condition on one header, with the semantics of YARP.
///
/// `ExactHeader` and `HeaderPrefix` look at each element of the comma-separated list (of the
/// semicolon-separated list for `Cookie`): separators between quotes do not separate, spaces before an
/// element do not count, and quotes around the whole element are taken off. `Contains` and `NotContains`
/// look at each line as it was sent. A header that is there without a value counts as missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderMatcher {
    name: HeaderName,
    mode: Mode,
    values: Box<[Pattern]>,
}

impl HeaderMatcher {
    /// Compiles a condition.
    ///
    /// # Errors
    ///
    /// Returns the first problem of the criterion.
    pub fn new(config: &RouteHeader) -> Result<Self, CriterionError> {
        Self::compile(config).map_err(criterion::first)
    }

    /// Like [`new`](Self::new), but returns all errors.
    pub(crate) fn compile(config: &RouteHeader) -> Result<Self, Vec<CriterionError>> {
        let name = if config.name.is_empty() {
            Err(CriterionError::NoName)
        } else {
            let name = config.name.parse();
            name.map_err(|_| CriterionError::InvalidName {
                name: config.name.clone(),
            })
        };
        let values = criterion::patterns(
            config.values.as_deref(),
            mode_name(config.mode),
            !matches!(config.mode, Mode::Exists | Mode::NotExists),
            config.is_case_sensitive,
        );
        let (name, values) = criterion::both(name, values)?;
        Ok(Self {
            name,
            mode: config.mode,
            values,
        })
    }

    /// The header's name, in lower case.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The comparison of values.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn mode_name(&self) -> &'static str {
        mode_name(self.mode)
    }

    pub(super) fn values(&self) -> &[Pattern] {
        &self.values
    }

    /// Returns true if a request meets the condition.
    pub fn matches<H: RequestHead + ?Sized>(&self, head: &H) -> bool {
        match self.mode {
            Mode::Exists => self.any_line(head, |line| !line.is_empty()),
            Mode::NotExists => !self.any_line(head, |line| !line.is_empty()),
            Mode::ExactHeader => self.any_element(head, Pattern::equals),
            Mode::HeaderPrefix => self.any_element(head, Pattern::begins),
            Mode::Contains => self.any_line(head, |line| self.any_value(line, Pattern::is_in)),
            Mode::NotContains => !self.any_line(head, |line| self.any_value(line, Pattern::is_in)),
        }
    }

    fn any_value(&self, text: &[u8], compare: fn(&Pattern, &[u8]) -> bool) -> bool {
        self.values.iter().any(|value| compare(value, text))
    }

    fn any_element<H: RequestHead + ?Sized>(
        &self,
        head: &H,
        compare: fn(&Pattern, &[u8]) -> bool,
    ) -> bool {
        let separator = if self.name == http::header::COOKIE {
            b';'
        } else {
            b','
        };
        self.any_line(head, |line| {
            Elements {
                rest: Some(line),
                separator,
            }
            .any(|element| self.any_value(element, compare))
        })
    }

    fn any_line<H: RequestHead + ?Sized>(
        &self,
        head: &H,
        mut wanted: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let mut found = false;
        head.for_each_header(self.name(), &mut |line| {
            found = wanted(line);
            !found
        });
        found
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::ExactHeader => "ExactHeader",
        Mode::HeaderPrefix => "HeaderPrefix",
        Mode::Exists => "Exists",
        Mode::Contains => "Contains",
        Mode::NotContains => "NotContains",
        Mode::NotExists => "NotExists",
    }
}

/// The elements of a list in one line of a header.
struct Elements<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let spaces = rest.iter().take_while(|b| **b == b' ').count();
        let rest = &rest[spaces..];
        let mut quoted = false;
        let mut end = None;
        for (at, byte) in rest.iter().enumerate() {
            if *byte == b'"' {
                quoted = !quoted;
            } else if *byte == self.separator && !quoted {
                end = Some(at);
                break;
            }
        }
        let element = match end {
            Some(end) => {
                self.rest = Some(&rest[end + 1..]);
                &rest[..end]
            }
            None => rest,
        };
        Some(match element {
            [b'"', inside @ .., b'"'] => inside,
            _ => element,
        })
    }
}
