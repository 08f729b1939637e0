//! Route templates, as in ASP.NET Core.

mod constraint;
mod datetime;
mod error;
mod expressions;
mod format;
mod multi_part;
mod number;
mod outline;
mod parameter;
mod parse;
mod precedence;
#[cfg(test)]
mod tests;
mod values;
mod view;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use self::error::{TemplateError, TemplateErrorKind};
pub(crate) use self::expressions::Expressions;
use self::multi_part::MultiPart;
use self::parameter::Parameter;
pub use self::precedence::TemplatePrecedence;
use self::values::RouteValue;
pub use self::values::RouteValues;
pub use self::view::{TemplateParameter, TemplatePart, TemplateSegment};
use super::path::{self, DecodedPath};
use super::percent::{self, Part};
use super::text;

/// Maximum number of segments of a template, as in ASP.NET Core.
pub const MAX_SEGMENTS: usize = 28;

/// Maximum length of a template, in bytes.
const MAX_LENGTH: usize = 4096;

/// Maximum number of literals and parameters in one segment.
const MAX_PARTS: usize = 32;

/// Maximum number of parameters of a template.
const MAX_PARAMETERS: usize = 64;

/// A pattern for paths, in the language of ASP.NET Core's route templates.
///
/// | in a template | matches |
/// |---|---|
/// | `/api/users` | itself, ignoring case; the `/` at the start may be left out |
/// | `{id}` | one segment that is not empty |
/// | `{id?}`, `{id=7}` | one segment, or none if nothing required follows |
/// | `{*rest}`, `{**rest}` | everything that is left, even nothing; only at the end |
/// | `{name}.{extension}`, `v{n}-beta` | a segment of several parts; in `{file}.{ext?}` the last may be missing |
/// | `{id:int:min(1)}` | only what satisfies every constraint |
/// | `{{`, `}}` | a brace |
///
/// Constraints: `int`, `long`, `bool`, `datetime`, `decimal`, `double`, `float`, `guid`, `minlength(n)`,
/// `maxlength(n)`, `length(n)`, `length(min,max)`, `min(n)`, `max(n)`, `range(min,max)`, `alpha`,
/// `regex(…)`, `required`, `file`, `nonfile`. In a `regex`, braces are doubled.
///
/// A template has at most 4096 bytes, 28 segments, 32 literals and parameters in one segment and 64
/// parameters; a `regex` is compiled to at most 256 KiB, and all that differ in one configuration to 16
/// MiB.
///
/// Paths are given percent-encoded, as they were sent, and compared decoded, except that `%2F` stays
/// encoded, and so do invalid escapes. A `/` at the end of a path makes no difference.
///
/// ```
/// use proxy_model::matching::PathTemplate;
///
/// let template: PathTemplate = "/orders/{id:int}/{**rest}".parse()?;
/// let values = template.capture("/Orders/7/items/a%20b").expect("it matches");
/// assert_eq!(values.get("id"), Some("7"));
/// assert_eq!(values.get("rest"), Some("items/a b"));
/// assert!(!template.matches("/orders/seven"));
/// # Ok::<(), proxy_model::matching::TemplateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PathTemplate {
    text: Arc<str>,
    segments: Arc<[Segment]>,
    /// Minimum number of segments of a path.
    required: usize,
    parameters: usize,
    precedence: TemplatePrecedence,
}

/// One segment of a template.
#[derive(Debug)]
enum Segment {
    Literal(Literal),
    Parameter(Parameter),
    MultiPart(MultiPart),
    CatchAll {
        parameter: Parameter,
        /// True if `/` in the value is kept when a path is made: `**`.
        keeps_slashes: bool,
    },
}

/// Literal text.
#[derive(Debug)]
struct Literal {
    text: Box<str>,
    folded: Box<str>,
}

impl Literal {
    fn new(text: String) -> Self {
        Self {
            folded: text::folded(&text),
            text: text.into(),
        }
    }

    fn write_signature(&self, signature: &mut String) {
        write_escaped(&self.folded, signature);
    }
}

/// Doubles braces, so that no text looks like a parameter.
fn write_escaped(text: &str, signature: &mut String) {
    for c in text.chars() {
        signature.push(c);
        if matches!(c, '{' | '}') {
            signature.push(c);
        }
    }
}

/// A part of a template as a trie sees it, which leaves constraints and multi-part segments to
/// [`PathTemplate::accepts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// A segment that is this folded text.
    Literal(&'a str),
    /// A segment that is not empty.
    Any,
    /// The rest of the path.
    Rest,
}

/// The value of one parameter in a path.
struct Capture<'t> {
    parameter: &'t Parameter,
    /// The segment that the value begins in, the value's bounds counted from there, or `None` if the path leaves the
    /// parameter out.
    place: Option<(usize, std::ops::Range<usize>)>,
}

impl PathTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// Returns the problem and its byte offset in `text`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_with(text, &mut Expressions::default())
    }

    /// Like [`parse`](Self::parse), for a template that shares expressions and their budget with others.
    pub(crate) fn parse_with(
        text: &str,
        expressions: &mut Expressions,
    ) -> Result<Self, TemplateError> {
        let (segments, parameters) = parse::parse(text, expressions)?;
        let required = segments
            .iter()
            .rposition(|segment| match segment {
                Segment::Literal(_) | Segment::MultiPart(_) => true,
                Segment::Parameter(parameter) => !parameter.may_be_missing(),
                Segment::CatchAll { .. } => false,
            })
            .map_or(0, |last| last + 1);
        Ok(Self {
            text: text.into(),
            precedence: TemplatePrecedence::of(&segments),
            segments: segments.into(),
            required,
            parameters,
        })
    }

    /// Returns the template that a route without a path has: `/{**catchall}`.
    pub fn catch_all() -> Self {
        Self::parse("/{**catchall}").expect("it is a valid template")
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The specificity of the template; smaller is tried first.
    pub fn precedence(&self) -> TemplatePrecedence {
        self.precedence
    }

    /// The names of its parameters, in order.
    pub fn parameter_names(&self) -> impl Iterator<Item = &str> {
        self.parameters_in_order().map(|parameter| &*parameter.name)
    }

    /// Returns true if a percent-encoded path matches. Allocates only if the path has escapes.
    pub fn matches(&self, path: &str) -> bool {
        let encoded = path::relevant(path);
        self.accepts(&self.cut(encoded, &path::decode(encoded)))
    }

    /// Returns the values of the parameters in a percent-encoded path, or `None` if it does not match.
    ///
    /// A parameter that the path leaves out has its default value, or no value. The same applies to a
    /// catch-all with nothing to match.
    pub fn capture(&self, path: &str) -> Option<RouteValues> {
        let encoded = path::relevant(path);
        let text = path::decode(encoded);
        let path = self.cut(encoded, &text);
        if !self.accepts(&path) {
            return None;
        }
        let mut values = vec![None; self.parameters];
        self.walk(&path, &mut |capture| {
            let index = capture.parameter.index;
            values[index] = capture.value(&path);
            true
        });
        Some(RouteValues::of(values.into_iter().flatten().collect()))
    }

    /// The position of the parameter called `name`, ignoring case.
    pub(crate) fn parameter_index(&self, name: &str) -> Option<usize> {
        self.parameters_in_order()
            .find(|parameter| text::equal_ignoring_case(&parameter.name, name))
            .map(|parameter| parameter.index)
    }

    /// Calls `look` with the value of the parameter at a position in a percent-encoded path that matches.
    /// The value is fully decoded: `%2F` becomes a slash, since the value is no longer part of a path.
    /// `None` if it has no value, as with [`capture`](Self::capture). Allocates only if the path has
    /// escapes.
    pub(crate) fn with_value<T>(
        &self,
        path: &str,
        index: usize,
        look: impl FnOnce(&str) -> T,
    ) -> Option<T> {
        let encoded = path::relevant(path);
        let text = path::decode(encoded);
        let path = self.cut(encoded, &text);
        if !self.fits(&path) {
            return None;
        }
        let mut look = Some(look);
        let mut found = None;
        self.walk(&path, &mut |capture| {
            if capture.parameter.index != index {
                return true;
            }
            let value = match capture.place {
                Some((segment, range)) => {
                    let value = &path.rest(segment)[range.clone()];
                    Some(match value.contains('%') {
                        false => Cow::Borrowed(value),
                        // A slash that was left encoded, or a literal `%`: only the encoded text shows
                        // which.
                        true => {
                            let encoded = path.encoded_rest(segment);
                            let encoded = percent::encoded_range(encoded, Part::Path, range);
                            percent::decode(encoded, Part::Value)
                        }
                    })
                }
                None => capture.parameter.default.as_deref().map(Cow::Borrowed),
            };
            found = value.and_then(|value| look.take().map(|look| look(&value)));
            false
        });
        found
    }

    fn cut<'a>(&self, encoded: &'a str, text: &'a str) -> DecodedPath<'a> {
        DecodedPath::new(encoded, text, self.segments.len() + 1)
    }

    /// Returns true if a path that was cut into enough segments matches.
    pub(super) fn accepts(&self, path: &DecodedPath<'_>) -> bool {
        self.fits(path)
            && self.walk(path, &mut |capture| {
                let value = capture.place.as_ref().map(|(segment, range)| {
                    let rest = path.rest(*segment);
                    &rest[range.clone()]
                });
                capture.parameter.accepts(value)
            })
    }

    /// Returns true if [`accepts`](Self::accepts) checks more than the [`shape`](Self::shape).
    pub(super) fn is_conditional(&self) -> bool {
        self.segments.iter().any(|segment| match segment {
            Segment::Literal(_) => false,
            Segment::Parameter(parameter) | Segment::CatchAll { parameter, .. } => {
                !parameter.constraints.is_empty()
            }
            Segment::MultiPart(_) => true,
        })
    }

    /// Returns the kinds of the segments, for a trie of routes.
    pub(super) fn shape(&self) -> impl ExactSizeIterator<Item = Shape<'_>> {
        self.segments.iter().map(|segment| match segment {
            Segment::Literal(literal) => Shape::Literal(&literal.folded),
            Segment::Parameter(_) | Segment::MultiPart(_) => Shape::Any,
            Segment::CatchAll { .. } => Shape::Rest,
        })
    }

    /// Minimum number of segments of a path.
    pub(super) fn required(&self) -> usize {
        self.required
    }

    /// Writes text that is the same for two templates that the same paths match, as far as their form shows it.
    pub(super) fn write_signature(&self, signature: &mut String) {
        for (index, segment) in self.segments.iter().enumerate() {
            signature.push('/');
            match segment {
                Segment::Literal(literal) => literal.write_signature(signature),
                Segment::Parameter(parameter) => {
                    let missing = if index < self.required { "" } else { "?" };
                    parameter.write_signature(missing, signature);
                }
                Segment::MultiPart(parts) => parts.write_signature(signature),
                Segment::CatchAll { parameter, .. } => parameter.write_signature("*", signature),
            }
        }
    }

    fn parameters_in_order(&self) -> impl Iterator<Item = &Parameter> {
        self.segments.iter().flat_map(|segment| {
            let (one, several) = match segment {
                Segment::Literal(_) => (None, None),
                Segment::Parameter(parameter) | Segment::CatchAll { parameter, .. } => {
                    (Some(parameter), None)
                }
                Segment::MultiPart(parts) => (None, Some(parts.parameters())),
            };
            one.into_iter().chain(several.into_iter().flatten())
        })
    }

    /// The catch-all, if there is one, and its position; else the number of segments.
    fn split_catch_all(&self) -> (usize, Option<&Parameter>) {
        match self.segments.split_last() {
            Some((Segment::CatchAll { parameter, .. }, before)) => (before.len(), Some(parameter)),
            _ => (self.segments.len(), None),
        }
    }

    /// Returns true if a path matches, ignoring constraints.
    fn fits(&self, path: &DecodedPath<'_>) -> bool {
        let (fixed, catch_all) = self.split_catch_all();
        path.count() >= self.required
            && (path.count() <= fixed || catch_all.is_some())
            && (self.segments[..fixed.min(path.count())].iter().enumerate()).all(
                |(index, segment)| {
                    let text = path.segment(index);
                    match segment {
                        Segment::Literal(literal) => text::equals_folded(text, &literal.folded),
                        Segment::Parameter(_) => !text.is_empty(),
                        Segment::MultiPart(parts) => parts.matches(text),
                        Segment::CatchAll { .. } => true,
                    }
                },
            )
    }

    /// Calls `each` with every parameter's value in a path that [fits](Self::fits), until it returns
    /// `false`.
    fn walk(&self, path: &DecodedPath<'_>, each: &mut dyn FnMut(Capture<'_>) -> bool) -> bool {
        self.segments.iter().enumerate().all(|(index, segment)| {
            let given = index < path.count();
            match segment {
                Segment::Literal(_) => true,
                Segment::Parameter(parameter) => each(Capture {
                    parameter,
                    place: given.then(|| (index, 0..path.segment(index).len())),
                }),
                Segment::MultiPart(parts) => {
                    parts.captures(path.segment(index), &mut |parameter, range| {
                        each(Capture {
                            parameter,
                            place: range.map(|range| (index, range)),
                        })
                    })
                }
                Segment::CatchAll { parameter, .. } => each(Capture {
                    parameter,
                    place: given.then(|| (index, 0..path.rest(index).len())),
                }),
            }
        })
    }
}

impl Capture<'_> {
    fn value(self, path: &DecodedPath<'_>) -> Option<RouteValue> {
        let name = self.parameter.name.clone();
        let Some((segment, range)) = self.place else {
            let default = self.parameter.default.as_deref()?;
            return Some(RouteValue::new(name, default));
        };
        let encoded = path.encoded_rest(segment);
        let encoded = percent::encoded_range(encoded, Part::Path, range.clone());
        let text = &path.rest(segment)[range];
        Some(RouteValue::captured(name, text, encoded))
    }
}

impl FromStr for PathTemplate {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        Self::parse(text)
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
