//! Segments of several parts: `{name}.{extension?}`.

use std::ops::Range;

use super::Literal;
use super::parameter::Parameter;
use crate::matching::text;

/// A segment of at least two parts, in which parameters and literals take turns.
///
/// The text is matched from its end: the last parameter is as short as possible, the first as long as
/// possible, and none is empty. ASP.NET Core resolves `a.b.c` against `{x}.{y}` in the same way: `x` is
/// `a.b`.
#[derive(Debug)]
pub(super) struct MultiPart(Box<[Piece]>);

/// One part of a segment.
#[derive(Debug)]
pub(super) enum Piece {
    Literal(Literal),
    Parameter(Parameter),
}

impl MultiPart {
    /// Creates a segment. `pieces` are at least two; no two neighbours are parameters.
    pub(super) fn new(pieces: Vec<Piece>) -> Self {
        Self(pieces.into())
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Parameter(parameter) => Some(parameter),
        })
    }

    /// The last parameter and the literal before it, if they may be missing.
    fn optional_end(&self) -> Option<(&Literal, &Parameter)> {
        match &*self.0 {
            [.., Piece::Literal(literal), Piece::Parameter(last)] if last.optional => {
                Some((literal, last))
            }
            _ => None,
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.pieces_for(text).is_some()
    }

    /// Calls `each` with every parameter and the place of its value in `text`, which
    /// [matches](Self::matches), until it returns `false`. From the last to the first.
    pub(super) fn captures(
        &self,
        text: &str,
        each: &mut dyn FnMut(&Parameter, Option<Range<usize>>) -> bool,
    ) -> bool {
        let Some(count) = self.pieces_for(text) else {
            return false;
        };
        if let Some((_, last)) = self.optional_end()
            && count < self.0.len()
            && !each(last, None)
        {
            return false;
        }
        let mut wanted = true;
        self.place(text, count, &mut |parameter, range| {
            wanted = wanted && each(parameter, Some(range));
        });
        wanted
    }

    /// Returns the number of pieces that `text` consists of: all, or all without the optional end. `None`
    /// if it does not match.
    fn pieces_for(&self, text: &str) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        let all = self.0.len();
        if self.place(text, all, &mut |_, _| ()) {
            return Some(all);
        }
        let (separator, _) = self.optional_end()?;
        // `a.` is not `a` without an extension.
        let ends_with_separator =
            text::rfind_folded(text, &separator.folded).is_some_and(|(_, end)| end == text.len());
        (!ends_with_separator && self.place(text, all - 2, &mut |_, _| ())).then_some(all - 2)
    }

    /// Finds the place of the first `count` pieces in `text`, from the end; `false` if they do not make up all of it.
    fn place<'s>(
        &'s self,
        text: &str,
        count: usize,
        each: &mut dyn FnMut(&'s Parameter, Range<usize>),
    ) -> bool {
        // What begins here has its place.
        let mut end = text.len();
        // A parameter that ends at `end` and begins after the literal before it.
        let mut open = None;
        for (index, piece) in self.0[..count].iter().enumerate().rev() {
            let literal = match piece {
                Piece::Parameter(parameter) => {
                    open = Some(parameter);
                    continue;
                }
                Piece::Literal(literal) => literal,
            };
            // The parameter needs at least one character.
            let limit = match open {
                Some(_) => text[..end].char_indices().next_back().map_or(0, |(i, _)| i),
                None => end,
            };
            let Some((start, stop)) = text::rfind_folded(&text[..limit], &literal.folded) else {
                return false;
            };
            if index + 1 == self.0.len() && stop != text.len() {
                return false;
            }
            if let Some(parameter) = open.take() {
                each(parameter, stop..end);
            }
            end = start;
        }
        match open {
            Some(parameter) if end > 0 => {
                each(parameter, 0..end);
                true
            }
            Some(_) => false,
            None => end == 0,
        }
    }

    pub(super) fn write_signature(&self, signature: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => literal.write_signature(signature),
                Piece::Parameter(parameter) => {
                    parameter.write_signature(if parameter.optional { "?" } else { "" }, signature);
                }
            }
        }
    }
}
