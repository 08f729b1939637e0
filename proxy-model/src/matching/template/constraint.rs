//! Constraints on the values of parameters.

use std::sync::Arc;

use regex::Regex;

use super::error::TemplateErrorKind as Kind;
use super::expressions::Expressions;
use super::{datetime, number};
use crate::suggest;

/// The names of the constraints that ASP.NET Core has by default.
const NAMES: [&str; 19] = [
    "int",
    "bool",
    "datetime",
    "decimal",
    "double",
    "float",
    "guid",
    "long",
    "minlength",
    "maxlength",
    "length",
    "min",
    "max",
    "range",
    "alpha",
    "regex",
    "required",
    "file",
    "nonfile",
];

/// A condition on the value of a parameter.
#[derive(Debug)]
pub(super) struct Constraint {
    text: Box<str>,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Int,
    Long,
    Bool,
    DateTime,
    Decimal,
    Float,
    Guid,
    /// The length in UTF-16 code units, as .NET counts.
    Length {
        min: usize,
        max: usize,
    },
    Range {
        min: i64,
        max: i64,
    },
    Alpha,
    Regex(Arc<Regex>),
    Required,
    File,
    NonFile,
}

impl Constraint {
    /// Parses `int` or `range(1,5)`.
    pub(super) fn parse(text: &str, expressions: &mut Expressions) -> Result<Self, Kind> {
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(arguments) => (name, Some(arguments)),
                None => (text, None),
            },
            None => (text, None),
        };
        let Some(name) = NAMES
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(name))
        else {
            return Err(Kind::UnknownConstraint { name: name.into() });
        };
        Ok(Self {
            text: match arguments {
                Some(arguments) => format!("{name}({arguments})").into(),
                None => name.into(),
            },
            check: Check::new(name, arguments, expressions)?,
        })
    }

    /// The constraint as it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if a value satisfies the constraint. The value is `None` if a path leaves out the
    /// parameter and it has no default.
    pub(super) fn accepts(&self, value: Option<&str>) -> bool {
        let Some(value) = value else {
            return matches!(self.check, Check::NonFile);
        };
        match &self.check {
            Check::Int => number::int(value).is_some_and(|number| i32::try_from(number).is_ok()),
            Check::Long => number::int(value).is_some(),
            Check::Bool => {
                let value = value.trim();
                value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
            }
            Check::DateTime => datetime::is_date_time(value),
            Check::Decimal => number::is_decimal(value),
            Check::Float => number::is_float(value),
            Check::Guid => number::is_guid(value),
            Check::Length { min, max } => (*min..=*max).contains(&value.encode_utf16().count()),
            Check::Range { min, max } => {
                number::int(value).is_some_and(|number| (*min..=*max).contains(&number))
            }
            Check::Alpha => value.bytes().all(|b| b.is_ascii_alphabetic()),
            Check::Regex(regex) => regex.is_match(value),
            Check::Required => !value.is_empty(),
            Check::File => is_file_name(value),
            Check::NonFile => !is_file_name(value),
        }
    }
}

impl Check {
    fn new(
        name: &'static str,
        arguments: Option<&str>,
        expressions: &mut Expressions,
    ) -> Result<Self, Kind> {
        let wrong = |expected| Kind::ConstraintArguments { name, expected };
        let one = |expected| {
            let number = arguments.and_then(number::int);
            number.ok_or_else(|| wrong(expected))
        };
        let one_length = || {
            let length = arguments.and_then(length);
            length.ok_or_else(|| wrong("needs a length, which is a number: `(10)`"))
        };
        Ok(match name {
            "minlength" => Self::Length {
                min: one_length()?,
                max: usize::MAX,
            },
            "maxlength" => Self::Length {
                min: 0,
                max: one_length()?,
            },
            "length" => {
                let (min, max) = arguments
                    .map(|one| one.split_once(',').unwrap_or((one, one)))
                    .and_then(|(min, max)| Some((length(min)?, length(max)?)))
                    .filter(|(min, max)| min <= max)
                    .ok_or_else(|| {
                        wrong("needs a length or two, the smaller first: `(10)` or `(2,10)`")
                    })?;
                Self::Length { min, max }
            }
            "min" => Self::Range {
                min: one("needs an integer: `(1)`")?,
                max: i64::MAX,
            },
            "max" => Self::Range {
                min: i64::MIN,
                max: one("needs an integer: `(100)`")?,
            },
            "range" => {
                let (min, max) = arguments
                    .and_then(|arguments| arguments.split_once(','))
                    .and_then(|(min, max)| Some((number::int(min)?, number::int(max)?)))
                    .filter(|(min, max)| min <= max)
                    .ok_or_else(|| wrong("needs two integers, the smaller first: `(1,100)`"))?;
                Self::Range { min, max }
            }
            "regex" => match arguments {
                Some(expression) => Self::Regex(expressions.compile(expression)?),
                None => return Err(wrong("needs an expression: `(^a+$)`")),
            },
            _ if arguments.is_some() => return Err(wrong("takes no arguments")),
            "int" => Self::Int,
            "long" => Self::Long,
            "bool" => Self::Bool,
            "datetime" => Self::DateTime,
            "decimal" => Self::Decimal,
            "double" | "float" => Self::Float,
            "guid" => Self::Guid,
            "alpha" => Self::Alpha,
            "required" => Self::Required,
            "file" => Self::File,
            _ => Self::NonFile,
        })
    }
}

/// A length, which .NET keeps in 32 bits.
fn length(text: &str) -> Option<usize> {
    let length = i32::try_from(number::int(text)?).ok()?;
    usize::try_from(length).ok()
}

/// Returns true if the last segment of `value` has a `.` that is followed by something other than `.`.
fn is_file_name(value: &str) -> bool {
    let name = value.rsplit('/').next().unwrap_or_default();
    name.split_once('.')
        .is_some_and(|(_, end)| end.bytes().any(|b| b != b'.'))
}

/// Returns a suggestion for the name of an unknown constraint.
pub(super) fn suggestion(name: &str) -> Option<String> {
    if name.contains('(') {
        return Some("close the parentheses of the constraint".into());
    }
    suggest::did_you_mean(name, NAMES)
}
