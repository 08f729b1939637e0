//! The errors of templates.

use thiserror::Error;

use super::{MAX_LENGTH, MAX_PARAMETERS, MAX_PARTS, MAX_SEGMENTS};
use crate::suggest::shortened;

/// The reason why a template is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} (at byte {offset})")]
pub struct TemplateError {
    offset: usize,
    kind: TemplateErrorKind,
    suggestion: Option<String>,
}

impl TemplateError {
    pub(super) fn new(offset: usize, kind: TemplateErrorKind) -> Self {
        let suggestion = kind.suggestion();
        Self {
            offset,
            kind,
            suggestion,
        }
    }

    /// The first byte of the template that the error is about.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The kind of error.
    pub fn kind(&self) -> &TemplateErrorKind {
        &self.kind
    }

    /// The correction, if one is known.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

/// The kinds of errors in a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// A `{` without its `}`.
    #[error("`{{` without a `}}`")]
    UnclosedBrace,
    /// A `}` without its `{`.
    #[error("`}}` without a `{{`")]
    StrayBrace,
    /// A `{` inside a parameter that is not doubled.
    #[error("`{{` inside a parameter")]
    BraceInParameter,
    /// Two `/` next to each other.
    #[error("an empty segment")]
    EmptySegment,
    /// A `~` that no `/` follows.
    #[error("`~` that is not followed by `/`")]
    Tilde,
    /// A `?` in a literal.
    #[error("`?` outside of a parameter")]
    QuestionMark,
    /// A parameter without a name.
    #[error("a parameter without a name")]
    EmptyName,
    /// A name with a character that a name cannot have.
    #[error("the parameter name `{}` contains `{character}`", shortened(name))]
    InvalidName {
        /// The name.
        name: String,
        /// The character.
        character: char,
    },
    /// Two parameters with the same name, ignoring case.
    #[error("two parameters are called `{}`", shortened(name))]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A catch-all that is not the end of the template.
    #[error("something follows the catch-all `{}`", shortened(name))]
    CatchAllNotLast {
        /// The catch-all's name.
        name: String,
    },
    /// A catch-all shares a segment with something else.
    #[error(
        "the catch-all `{}` shares its segment with something else",
        shortened(name)
    )]
    CatchAllInPart {
        /// The catch-all's name.
        name: String,
    },
    /// A catch-all is marked with `?`.
    #[error("the catch-all `{}` is marked as optional", shortened(name))]
    OptionalCatchAll {
        /// The catch-all's name.
        name: String,
    },
    /// A parameter that is optional and has a default value.
    #[error(
        "the parameter `{}` is optional and has a default value",
        shortened(name)
    )]
    OptionalDefault {
        /// The parameter's name.
        name: String,
    },
    /// An optional parameter that is not the last part of its segment.
    #[error(
        "the optional parameter `{}` is not the last part of its segment",
        shortened(name)
    )]
    OptionalNotLast {
        /// The parameter's name.
        name: String,
    },
    /// An optional parameter that shares its segment and does not stand after a single `.`.
    #[error(
        "the optional parameter `{}` does not stand after a `.` that is alone",
        shortened(name)
    )]
    OptionalWithoutPeriod {
        /// The parameter's name.
        name: String,
    },
    /// Two parameters with nothing between them.
    #[error(
        "nothing separates the parameter `{}` from the one before it",
        shortened(name)
    )]
    AdjacentParameters {
        /// The second one's name.
        name: String,
    },
    /// A constraint that does not exist.
    #[error("unknown constraint `{}`", shortened(name))]
    UnknownConstraint {
        /// The name as written.
        name: String,
    },
    /// Arguments that a constraint does not take.
    #[error("the constraint `{name}` {expected}")]
    ConstraintArguments {
        /// The constraint's name.
        name: &'static str,
        /// The arguments that the constraint takes.
        expected: &'static str,
    },
    /// An expression that cannot be compiled.
    #[error("the expression of a `regex` cannot be used: {}", shortened(reason))]
    Regex {
        /// The reason.
        reason: String,
    },
    /// An expression that takes too much memory.
    #[error("the expression of a `regex` takes more than {} KiB of memory", most >> 10)]
    RegexTooLarge {
        /// The limit, in bytes.
        most: usize,
    },
    /// An expression for which other expressions leave no memory.
    #[error("all `regex` constraints together take more than {} MiB of memory", most >> 20)]
    RegexBudget {
        /// The limit, in bytes.
        most: usize,
    },
    /// More than 4096 bytes.
    #[error("the template is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// More than 28 segments.
    #[error("a template has at most {MAX_SEGMENTS} segments")]
    TooManySegments,
    /// More than 32 literals and parameters in one segment.
    #[error("a segment has at most {MAX_PARTS} parts")]
    TooManyParts,
    /// More than 64 parameters.
    #[error("a template has at most {MAX_PARAMETERS} parameters")]
    TooManyParameters,
}

impl TemplateErrorKind {
    /// Returns true if the memory for expressions does not suffice.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::RegexTooLarge { .. } | Self::RegexBudget { .. })
    }

    fn suggestion(&self) -> Option<String> {
        Some(match self {
            Self::UnclosedBrace => "close the parameter, or write `{{` for a brace".into(),
            Self::StrayBrace => "open the parameter, or write `}}` for a brace".into(),
            Self::BraceInParameter => "write `{{` and `}}` for braces inside a parameter".into(),
            Self::EmptySegment => "write one `/` between segments".into(),
            Self::Tilde => "begin the template with `/`".into(),
            Self::QuestionMark => {
                "a path has no `?`: match the query with `QueryParameters`, or write `{name?}` for an optional parameter"
                    .into()
            }
            Self::EmptyName => "write a name between the braces".into(),
            Self::InvalidName {
                character: '*',
                name,
            } => format!("a catch-all has one or two asterisks: `{{**{}}}`", shortened(name.trim_start_matches('*'))),
            Self::InvalidName { .. } => "names cannot have `/`, `{`, `}`, `?` or `*` in them".into(),
            Self::DuplicateName { name } => format!("call one of them `{}2`", shortened(name)),
            Self::CatchAllNotLast { .. } => "move the catch-all to the end".into(),
            Self::CatchAllInPart { name } => format!("give it a segment of its own: `/{{**{}}}`", shortened(name)),
            Self::OptionalCatchAll { name } => {
                format!("a catch-all matches nothing, too: write `{{**{}}}`", shortened(name))
            }
            Self::OptionalDefault { name } => format!("remove the `?` of `{}`, or its default value", shortened(name)),
            Self::OptionalNotLast { .. } => "move it to the end of the segment, or remove the `?`".into(),
            Self::OptionalWithoutPeriod { .. } => {
                "only `.` can come before it, as in `{file}.{extension?}`".into()
            }
            Self::AdjacentParameters { .. } => "put text between them, as in `{a}-{b}`".into(),
            Self::UnknownConstraint { name } => super::constraint::suggestion(name)?,
            Self::ConstraintArguments { .. }
            | Self::TooLong
            | Self::TooManySegments
            | Self::TooManyParts
            | Self::TooManyParameters => return None,
            Self::RegexTooLarge { .. } | Self::RegexBudget { .. } => {
                "repeat less, or write `[a-z0-9_]` for `\\w` and `[0-9]` for `\\d`, which mean all languages".into()
            }
            Self::Regex { .. } => {
                "look-around and back-references are not supported, and braces are doubled inside a template".into()
            }
        })
    }
}
