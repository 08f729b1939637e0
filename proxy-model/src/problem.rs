//! Diagnostics of a configuration and their places.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The severity of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A warning: the configuration is used, but has another effect than it suggests.
    Warning,
    /// An error: the configuration, or the part named by the pointer, is rejected.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A diagnostic of a configuration: its place, the problem, and the correction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The severity.
    pub severity: Severity,
    /// The place, as a JSON pointer (RFC 6901) from the root that the reader was given.
    pub pointer: String,
    /// The kind of problem, in a form that programs can compare: `invalid_path`.
    pub code: Cow<'static, str>,
    /// A description of the problem and of the expected value.
    pub message: String,
    /// The correction, if one is known.
    pub suggestion: Option<String>,
    /// The origin of the value, if it is known: `appsettings.json:12`, or the name of a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<str>>,
}

impl Problem {
    /// Creates a problem that makes the part at `pointer` unusable.
    pub fn error(
        pointer: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Error, pointer.into(), code, message.into())
    }

    /// Creates a problem that leaves the part at `pointer` usable.
    pub fn warning(
        pointer: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, pointer.into(), code, message.into())
    }

    fn new(severity: Severity, pointer: String, code: &'static str, message: String) -> Self {
        Self {
            severity,
            pointer,
            code: Cow::Borrowed(code),
            message,
            suggestion: None,
            origin: None,
        }
    }

    /// Adds a correction.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Sets the origin, unless it is known already.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Box<str>>) -> Self {
        self.origin.get_or_insert_with(|| origin.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        write!(f, "{} at ", self.severity)?;
        write_line(f, place)?;
        if let Some(origin) = &self.origin {
            f.write_str(" (")?;
            write_line(f, origin)?;
            f.write_str(")")?;
        }
        f.write_str(": ")?;
        write_line(f, &self.message)?;
        match &self.suggestion {
            Some(suggestion) => {
                f.write_str(" (")?;
                write_line(f, suggestion)?;
                f.write_str(")")
            }
            None => Ok(()),
        }
    }
}

/// Writes untrusted text on one line, without control characters that a terminal would execute.
fn write_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        if c.is_control() || turns_text(c) {
            write!(f, "{}", c.escape_default())?;
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

/// Ends of lines beyond ASCII, and what turns the direction of a text around, so that it reads as something else.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The problems found in one pass over a configuration, in the order in which they were found.
///
/// At most [`MAX`](Self::MAX) are kept, so that a hostile input cannot fill the memory; the rest are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Problem>")]
#[serde(into = "Vec<Problem>")]
pub struct Problems {
    kept: Vec<Problem>,
    errors: usize,
    left_out: usize,
}

impl Problems {
    /// Maximum number of problems that are kept.
    pub const MAX: usize = 10_000;

    /// Creates an empty list of problems.
    pub const fn new() -> Self {
        Self {
            kept: Vec::new(),
            errors: 0,
            left_out: 0,
        }
    }

    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        if problem.severity == Severity::Error {
            self.errors += 1;
        }
        if self.kept.len() < Self::MAX {
            self.kept.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds all of `others`.
    pub fn append(&mut self, others: Self) {
        let kept = self.kept.len().saturating_add(others.kept.len());
        if kept <= Self::MAX {
            self.errors += others.errors;
            self.left_out += others.left_out;
            self.kept.extend(others.kept);
            return;
        }
        self.append_if(others, |_| true);
    }

    /// Adds those problems of `others` that satisfy `keep`, and the number of problems that `others`
    /// counted but did not keep.
    pub(crate) fn append_if(&mut self, others: Self, keep: impl Fn(&Problem) -> bool) {
        self.errors += others.errors - others.errors().count();
        self.left_out += others.left_out;
        self.extend(others.kept.into_iter().filter(keep));
    }

    /// Returns true if at least one problem is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors, including those that were counted but not kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Number of problems that were counted but not kept, because there were too many.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The errors among those kept.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.kept.iter().filter(|p| p.severity == Severity::Error)
    }

    /// Returns true if there are no problems, not even warnings.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Number of problems that are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Iterates over the problems that are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.kept.iter()
    }

    /// Changes each pointer to what `place` makes of it.
    pub(crate) fn repoint(&mut self, mut place: impl FnMut(&str) -> String) {
        for problem in &mut self.kept {
            problem.pointer = place(&problem.pointer);
        }
    }

    /// Sets the origins of keys that are written twice. `of` returns the place of the second one and that of the
    /// first.
    pub(crate) fn place_repeated(&mut self, of: impl Fn(&str) -> Option<(String, String)>) {
        for problem in &mut self.kept {
            if problem.code != "duplicate_key" || problem.origin.is_some() {
                continue;
            }
            if let Some((second, first)) = of(&problem.pointer) {
                problem.origin = Some(second.into());
                problem.suggestion = Some(format!("keep one of them; the first is at {first}"));
            }
        }
    }

    /// Sets the origin of each problem that has none to that of its pointer.
    pub(crate) fn set_origins(&mut self, of: impl Fn(&str) -> Option<String>) {
        for problem in self
            .kept
            .iter_mut()
            .filter(|problem| problem.origin.is_none())
        {
            problem.origin = of(&problem.pointer).map(String::into_boxed_str);
        }
    }

    /// Adds `prefix` before each pointer, for a part that was read on its own.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        for problem in &mut self.kept {
            problem.pointer.insert_str(0, prefix);
        }
        self
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.kept.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n{more} more"),
        }
    }
}

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self::from_iter([problem])
    }
}

impl From<Vec<Problem>> for Problems {
    fn from(problems: Vec<Problem>) -> Self {
        Self::from_iter(problems)
    }
}

impl From<Problems> for Vec<Problem> {
    fn from(problems: Problems) -> Self {
        problems.kept
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        let mut all = Self::new();
        all.extend(problems);
        all
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        problems.into_iter().for_each(|problem| self.push(problem));
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

/// Appends one reference token to a JSON pointer, escaping `~` and `/` (RFC 6901 section 3).
pub fn pointer_to(parent: &str, token: &str) -> String {
    let mut pointer = String::with_capacity(parent.len() + 1 + token.len());
    pointer.push_str(parent);
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_as_rfc_6901_says() {
        assert_eq!(pointer_to("/Routes", "a/b~c"), "/Routes/a~1b~0c");
    }

    #[test]
    fn too_many_problems_are_counted_only() {
        let mut problems: Problems = (0..Problems::MAX)
            .map(|i| Problem::warning(format!("/{i}"), "w", "w"))
            .collect();
        assert!(!problems.has_errors());
        problems.push(Problem::error("/x", "e", "e"));
        problems.append(Problems::from(Problem::error("/y", "e", "e")));
        assert_eq!(problems.len(), Problems::MAX);
        assert_eq!((problems.left_out(), problems.error_count()), (2, 2));
        assert!(problems.to_string().ends_with("\n2 more"));
    }

    #[test]
    fn a_problem_is_one_line_whatever_is_in_it() {
        let problem = Problem::warning("/Routes/a\nb", "w", "`\u{1b}[31m`");
        assert_eq!(
            problem.to_string(),
            "warning at /Routes/a\\nb: `\\u{1b}[31m`"
        );
        let problem =
            Problem::error("/a\u{2028}b", "e", "`\u{202e}moc.elpmaxe`").with_suggestion("\u{2069}");
        assert_eq!(
            problem.to_string(),
            "error at /a\\u{2028}b: `\\u{202e}moc.elpmaxe` (\\u{2069})"
        );
    }

    #[test]
    fn a_problem_reads_as_a_sentence() {
        let problem = Problem::error("/Routes/r1/Match/Path", "invalid_path", "unclosed `{`")
            .with_suggestion("write `{{` for a literal brace");
        assert_eq!(
            problem.to_string(),
            "error at /Routes/r1/Match/Path: unclosed `{` (write `{{` for a literal brace)"
        );
    }
}
