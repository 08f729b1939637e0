//! Making paths from templates.

use super::multi_part::Piece;
use super::values::RouteValue;
use super::{Parameter, PathTemplate, RouteValues, Segment};
use crate::matching::percent;
use crate::matching::text::equal_ignoring_case;

impl PathTemplate {
    /// Makes a percent-encoded path by putting `values` in the places of the parameters.
    ///
    /// Values that the template has no parameter for are not used. A parameter without a value, or with an
    /// empty one, is left out where nothing follows; where something does, the result is `None`. So is a
    /// value that is the parameter's default. A `/` in the value of `{**name}` stays; everywhere else it is
    /// encoded.
    ///
    /// What [`capture`](Self::capture) took from a path keeps the escapes that it had there, so that `%2F`
    /// survives. The result is empty if there is nothing to write.
    ///
    /// ```
    /// use proxy_model::matching::PathTemplate;
    ///
    /// let taken: PathTemplate = "/old/{id}/{**rest}".parse()?;
    /// let made: PathTemplate = "/new/{**rest}".parse()?;
    /// let values = taken.capture("/old/7/a%2Fb/c").expect("it matches");
    /// assert_eq!(made.format(&values).as_deref(), Some("/new/a%2Fb/c"));
    /// # Ok::<(), proxy_model::matching::TemplateError>(())
    /// ```
    pub fn format(&self, values: &RouteValues) -> Option<String> {
        let mut path = PathWriter::default();
        for segment in &*self.segments {
            match segment {
                Segment::Literal(literal) => path.write_literal(&literal.text)?,
                Segment::Parameter(parameter) => path.write_value(parameter, values, false)?,
                Segment::CatchAll {
                    parameter,
                    keeps_slashes,
                } => path.write_value(parameter, values, *keeps_slashes)?,
                Segment::MultiPart(parts) => {
                    for piece in parts.pieces() {
                        match piece {
                            Piece::Literal(literal) => path.write_literal(&literal.text)?,
                            Piece::Parameter(parameter) => {
                                let before = path.last;
                                if path.write_value(parameter, values, false).is_none() {
                                    // `{file}.{ext?}` without `ext`: the period goes, too.
                                    if !parameter.optional {
                                        return None;
                                    }
                                    path.text.truncate(before);
                                }
                            }
                        }
                    }
                }
            }
            path.end_segment();
        }
        Some(path.finish())
    }
}

/// Writes a path from left to right.
#[derive(Default)]
struct PathWriter {
    text: String,
    /// Defaults that are written only if something follows them, with the `/` before each.
    waiting: String,
    /// True if a segment was left out, after which nothing can be written.
    left_out: bool,
    /// True if the current segment has text.
    inside: bool,
    /// True if the current segment has text, written or pending.
    begun: bool,
    /// The start of the last piece of text.
    last: usize,
}

impl PathWriter {
    fn write_literal(&mut self, text: &str) -> Option<()> {
        self.write(|path| percent::encode(path, text, false))
    }

    /// Writes the value of a parameter. `None` if the value is missing and cannot be left out here.
    fn write_value(
        &mut self,
        parameter: &Parameter,
        values: &RouteValues,
        keep_slashes: bool,
    ) -> Option<()> {
        let value = values.find(&parameter.name);
        let text = value.map_or("", RouteValue::text);
        let encode = |path: &mut String| match value.and_then(RouteValue::encoded) {
            Some(encoded) => percent::encode_again(path, encoded, keep_slashes),
            None => percent::encode(path, text, keep_slashes),
        };
        let is_default = (parameter.default.as_deref())
            .is_some_and(|default| equal_ignoring_case(default, text));
        if text.is_empty() {
            if self.begun {
                return None;
            }
            self.left_out = true;
            Some(())
        } else if is_default && !self.inside {
            self.wait(encode)
        } else {
            self.write(encode)
        }
    }

    fn wait(&mut self, encode: impl FnOnce(&mut String)) -> Option<()> {
        if self.left_out {
            return None;
        }
        let is_first = self.text.is_empty() && self.waiting.is_empty();
        if !self.begun && !is_first {
            self.waiting.push('/');
        }
        self.begun = true;
        encode(&mut self.waiting);
        Some(())
    }

    fn write(&mut self, encode: impl FnOnce(&mut String)) -> Option<()> {
        if self.left_out {
            return None;
        }
        self.text.push_str(&self.waiting);
        self.waiting.clear();
        if !self.begun && !self.text.is_empty() {
            self.text.push('/');
        }
        self.inside = true;
        self.begun = true;
        self.last = self.text.len();
        encode(&mut self.text);
        Some(())
    }

    fn end_segment(&mut self) {
        self.inside = false;
        self.begun = false;
    }

    fn finish(mut self) -> String {
        // What is still waiting are defaults, which nothing followed. The first value may have brought its own `/`.
        if !self.text.is_empty() && !self.text.starts_with('/') {
            self.text.insert(0, '/');
        }
        self.text
    }
}
