//! The specificity of templates.

use std::fmt;

use super::{MAX_SEGMENTS, Segment};

/// The specificity of a template; smaller is tried first.
///
/// Each segment counts as one digit, and the digits are compared from the first segment on: 1 for a
/// literal, 2 for a parameter with constraints or a segment of several parts, 3 for a parameter, 4 for a
/// catch-all with constraints, 5 for a catch-all. A template that ends where another one continues is
/// smaller. The text form is that of ASP.NET Core: `/a/{id}` is `1.3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TemplatePrecedence(u128);

/// Bits for one digit; 28 of them are 84.
const DIGIT: usize = 3;

impl TemplatePrecedence {
    pub(super) fn of(segments: &[Segment]) -> Self {
        Self(
            (segments.iter().map(digit))
                .take(MAX_SEGMENTS)
                .enumerate()
                .map(|(position, digit)| digit << Self::shift(position))
                .sum(),
        )
    }

    fn shift(position: usize) -> usize {
        DIGIT * (MAX_SEGMENTS - 1 - position)
    }

    /// The digits of the segments, the first segment first.
    fn digits(self) -> impl Iterator<Item = u128> {
        (0..MAX_SEGMENTS)
            .map(move |position| (self.0 >> Self::shift(position)) & 7)
            .take_while(|digit| *digit != 0)
    }
}

/// The digit of one segment.
pub(super) fn digit(segment: &Segment) -> u128 {
    match segment {
        Segment::Literal(_) => 1,
        Segment::MultiPart(_) => 2,
        Segment::Parameter(parameter) => 3 - u128::from(!parameter.constraints.is_empty()),
        Segment::CatchAll { parameter, .. } => 5 - u128::from(!parameter.constraints.is_empty()),
    }
}

impl fmt::Display for TemplatePrecedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0");
        }
        for (position, digit) in self.digits().enumerate() {
            if position == 1 {
                f.write_str(".")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TemplatePrecedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TemplatePrecedence({self})")
    }
}
