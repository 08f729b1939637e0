//! The errors of a script.

use std::fmt;

/// An error of a script: place, message and suggested correction.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The line, from 1, if it is known: for TOML, and for text that is no JSON at all.
    pub line: Option<usize>,
    /// The place in the script, such as `event[3].place`; empty for the script as a whole.
    pub place: String,
    /// The error.
    pub message: String,
    /// The suggested correction.
    pub suggestion: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " ({suggestion})"),
            None => Ok(()),
        }
    }
}

/// All errors of a script, in the order of its text. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptErrors(Vec<Problem>);

impl ScriptErrors {
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.line);
        Self(problems)
    }

    /// Returns the errors.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for ScriptErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptErrors {}
