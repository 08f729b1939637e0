//! The properties by which two templates may tie.

use std::fmt::Write as _;

use super::expressions::Expressions;
use super::precedence::digit;
use super::{PathTemplate, Segment, parse};

impl PathTemplate {
    /// Returns a text that is equal for two templates that are equally specific, unless no path matches
    /// both. `None` if `text` is not a template. Expressions are not compiled.
    ///
    /// Such templates have the same kinds of segments. A path must have all segments up to the last
    /// literal, so it cannot match two that differ in a literal.
    pub(crate) fn outline(text: &str) -> Option<String> {
        let (segments, _) = parse::parse(text, &mut Expressions::unread()).ok()?;
        let mut outline = String::new();
        for segment in &segments {
            match segment {
                // No literal has a `/` in it, so none looks like two.
                Segment::Literal(literal) => write!(outline, "/={}", literal.folded),
                segment => write!(outline, "/{}", digit(segment)),
            }
            .expect("a string can be written to");
        }
        Some(outline)
    }
}
