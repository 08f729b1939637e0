//! The errors of a topology.

use std::fmt;

/// The error of a topology that cannot be used, with all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The text is not a valid topology. The message has the line and column.
    #[error("the topology cannot be read: {0}")]
    Syntax(String),
    /// The topology can be parsed, but describes no valid cluster.
    #[error("{}", list(.0))]
    Invalid(Vec<Problem>),
}

impl TopologyError {
    /// Creates the error of an entity that the cluster rejected.
    pub(crate) fn rejected(at: String, message: String) -> Self {
        Self::Invalid(vec![Problem {
            at,
            message,
            suggestion: String::new(),
        }])
    }
}

/// A single error of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The path of keys, e.g. `applications.Shop.services.Web.type`.
    pub at: String,
    /// The error.
    pub message: String,
    /// The suggested correction. Empty if the message contains it.
    pub suggestion: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        if !self.suggestion.is_empty() {
            write!(f, " ({})", self.suggestion)?;
        }
        Ok(())
    }
}

/// The maximum number of errors to report.
const MAX_PROBLEMS: usize = 100;

fn list(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect();
    let what = if problems.len() == 1 {
        "a problem"
    } else {
        "problems"
    };
    format!("the topology has {what}:{}", lines.concat())
}

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(
        &mut self,
        at: impl Into<String>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(Problem {
                at: at.into(),
                message: message.into(),
                suggestion: suggestion.into(),
            });
        }
    }

    /// Reports a reference to an unknown name.
    pub(super) fn unknown<'a>(
        &mut self,
        at: impl Into<String>,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) {
        let suggestion = match closest(name, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let some: Vec<&str> = known.take(8).collect();
                if some.is_empty() {
                    "there is none".to_owned()
                } else {
                    format!("there are: {}", some.join(", "))
                }
            }
        };
        self.add(at, format!("there is no {what} `{name}`"), suggestion);
    }

    pub(super) fn into_result(self) -> Result<(), TopologyError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(TopologyError::Invalid(self.0))
        }
    }
}

/// Returns the known word that is most similar to `name`, if it is similar enough.
fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let near = known
        .take(1000)
        .map(|word| (distance(name, word, limit), word));
    let near = near.filter(|(distance, _)| *distance <= limit);
    near.min().map(|(_, word)| word)
}

/// Returns the edit distance of two names, ignoring case: the number of letters to insert, omit or change.
/// Returns more than `limit` if the lengths alone differ by more than that.
fn distance(left: &str, right: &str, limit: usize) -> usize {
    let fold = |text: &str| {
        text.chars()
            .take(100)
            .flat_map(char::to_lowercase)
            .collect::<Vec<char>>()
    };
    let (left, right) = (fold(left), fold(right));
    if left.len().abs_diff(right.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_nearly_right_are_found() {
        let known = ["WebType", "StoreType", "Worker"];
        assert_eq!(closest("Webtype", known.into_iter()), Some("WebType"));
        assert_eq!(closest("WebTyp", known.into_iter()), Some("WebType"));
        assert_eq!(closest("Basket", known.into_iter()), None);
        assert_eq!(distance("kitten", "sitting", 9), 3);
    }
}
