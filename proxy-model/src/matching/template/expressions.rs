//! Compiling regular expressions without using more memory than is set aside for them.

use std::collections::HashMap;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::error::TemplateErrorKind as Kind;

/// The memory limits that are tried for an expression, in bytes. The last is enough for `\w` four times,
/// which is large since it means the letters of all languages.
const SIZES: [usize; 3] = [16 << 10, 64 << 10, 256 << 10];

/// The memory limit of all expressions together, in bytes: the sum of the [`SIZES`] that hold them.
const BUDGET: usize = 16 << 20;

/// The cost of a rejected expression, for the time that the rejection took.
const REJECTED: usize = 64 << 10;

/// The memory limit of the states that an expression finds while it matches, in bytes. Beyond it, the
/// expression discards states or matches in a slower way that needs none. Both take time in proportion to
/// the value.
const STATES: usize = 256 << 10;

/// The expressions of one configuration. Equal ones are compiled once.
///
/// Together they take at most a few times 16 MiB. Expressions beyond the budget are rejected.
#[derive(Debug)]
pub(crate) struct Expressions {
    /// Behind an `Arc`, since each clone of an expression would keep the states that it finds for itself.
    compiled: HashMap<Box<str>, Result<Arc<Regex>, Kind>>,
    left: usize,
    is_compiling: bool,
}

impl Default for Expressions {
    fn default() -> Self {
        Self {
            compiled: HashMap::new(),
            left: BUDGET,
            is_compiling: true,
        }
    }
}

impl Expressions {
    /// Accepts any text as an expression without compiling it, for reading only the form of a template.
    pub(super) fn unread() -> Self {
        Self {
            is_compiling: false,
            ..Self::default()
        }
    }

    /// Compiles an expression that, as in ASP.NET Core, ignores case and may match anywhere in the value.
    ///
    /// Matching takes time in proportion to the value, for every expression.
    pub(super) fn compile(&mut self, expression: &str) -> Result<Arc<Regex>, Kind> {
        let text = if self.is_compiling { expression } else { "" };
        if let Some(compiled) = self.compiled.get(text) {
            return compiled.clone();
        }
        if self.left == 0 {
            // Not kept: the number of texts that are rejected from here on is unlimited.
            return Err(Kind::RegexBudget { most: BUDGET });
        }
        let compiled = self.compile_new(text);
        self.compiled.insert(text.into(), compiled.clone());
        compiled
    }

    fn compile_new(&mut self, expression: &str) -> Result<Arc<Regex>, Kind> {
        for size in SIZES {
            if size > self.left {
                self.left = self.left.saturating_sub(REJECTED);
                return Err(Kind::RegexBudget { most: BUDGET });
            }
            match build(expression, size) {
                Err(Kind::RegexTooLarge { .. }) => {}
                Err(error) => return Err(error),
                Ok(regex) => {
                    self.left -= size;
                    return Ok(Arc::new(regex));
                }
            }
        }
        self.left = self.left.saturating_sub(REJECTED);
        let [.., most] = SIZES;
        Err(Kind::RegexTooLarge { most })
    }
}

fn build(expression: &str, size: usize) -> Result<Regex, Kind> {
    RegexBuilder::new(expression)
        .case_insensitive(true)
        .size_limit(size)
        .dfa_size_limit(STATES)
        .build()
        .map_err(|error| {
            if let regex::Error::CompiledTooBig(most) = error {
                return Kind::RegexTooLarge { most };
            }
            // The last line has the problem; those before it show the place.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            Kind::Regex {
                reason: last.trim_start_matches("error: ").into(),
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_too_large_on_its_own() {
        let mut expressions = Expressions::default();
        for text in [
            r"^\w{1,4}$",
            r"^[\w-]+$",
            r"^[a-z0-9_-]{1,100}$",
            r"^\d{4}-\d\d$",
        ] {
            assert!(expressions.compile(text).is_ok(), "{text}");
        }
        for text in [r"\w{100}", r"(((.{50}){50}){50}){50}"] {
            let error = expressions.compile(text).unwrap_err();
            assert_eq!(error, Kind::RegexTooLarge { most: 256 << 10 }, "{text}");
        }
    }

    #[test]
    fn equal_expressions_cost_once() {
        let mut expressions = Expressions::default();
        for _ in 0..1_000 {
            assert!(expressions.compile(r"\w{4}").is_ok());
        }
        assert_eq!(expressions.left, BUDGET - (256 << 10));
    }

    #[test]
    fn nothing_is_compiled_once_the_budget_is_spent() {
        let mut expressions = Expressions {
            left: 100 << 10,
            ..Expressions::default()
        };
        assert!(expressions.compile(r"\w").is_ok());
        let rejected = Err(Kind::RegexBudget { most: BUDGET });
        assert_eq!(expressions.compile(r"\w{4}").map(|_| ()), rejected);
        assert_eq!(expressions.compile("a").map(|_| ()), rejected);
        let kept = expressions.compiled.len();
        assert_eq!(expressions.compile("b").map(|_| ()), rejected);
        assert_eq!(expressions.compiled.len(), kept);
        assert!(
            expressions.compile(r"\w").is_ok(),
            "what is there can be shared"
        );
    }

    #[test]
    fn expressions_that_are_too_large_use_the_budget_up() {
        let mut expressions = Expressions {
            left: 5 * REJECTED,
            ..Expressions::default()
        };
        let errors = (0..4).map(|i| {
            expressions
                .compile(&format!(r"\w{{{}}}", 50 + i))
                .unwrap_err()
        });
        let too_large = errors.filter(|error| matches!(error, Kind::RegexTooLarge { .. }));
        assert_eq!(
            too_large.count(),
            2,
            "after these there is no room for the largest"
        );
    }
}
