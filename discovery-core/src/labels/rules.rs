//! The properties of one dialect: prefix, case, aliases, and the severity of mistakes.

use proxy_model::Severity;

/// The rules that decide which labels belong to a dialect and how their keys are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRules {
    /// The prefix of the dialect's keys, including the dot: `proxy.`. Labels without it are ignored.
    pub prefix: String,
    /// True if the prefix matches in any case (ASCII).
    pub ignore_prefix_case: bool,
    /// True if the rest of the key matches in any case (ASCII).
    pub ignore_key_case: bool,
    /// Severity of a label with the prefix and an unknown key.
    pub unknown: Severity,
    /// Severity of a label whose key cannot be parsed: two dots with nothing between.
    pub malformed: Severity,
    /// Other names for places in the tree; see [`with_alias`](Self::with_alias).
    aliases: Vec<Alias>,
}

/// Another name for a place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alias {
    /// The parts of the alias, each with the part that it replaces.
    parts: Vec<(String, String)>,
}

impl LabelRules {
    /// Creates rules for keys that begin with `prefix`, compared ignoring case. Unknown keys are warnings.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            ignore_prefix_case: true,
            ignore_key_case: true,
            unknown: Severity::Warning,
            malformed: Severity::Error,
            aliases: Vec::new(),
        }
    }

    /// Sets whether the prefix matches in any case.
    #[must_use]
    pub fn with_ignore_prefix_case(mut self, ignore: bool) -> Self {
        self.ignore_prefix_case = ignore;
        self
    }

    /// Sets whether the rest of the key matches in any case.
    #[must_use]
    pub fn with_ignore_key_case(mut self, ignore: bool) -> Self {
        self.ignore_key_case = ignore;
        self
    }

    /// Sets how bad a label is that has the prefix and means nothing.
    #[must_use]
    pub fn with_unknown(mut self, severity: Severity) -> Self {
        self.unknown = severity;
        self
    }

    /// Sets how bad a label is whose key cannot be taken apart.
    #[must_use]
    pub fn with_malformed(mut self, severity: Severity) -> Self {
        self.malformed = severity;
        self
    }

    /// Makes `written` an alias of `meant`, for dialects whose names have changed: labels below the one are
    /// found below the other, and two labels for the same setting are a problem. Both are keys without the
    /// prefix.
    ///
    /// # Panics
    ///
    /// Panics if the two names do not have the same number of parts.
    #[must_use]
    #[track_caller]
    pub fn with_alias(mut self, written: &str, meant: &str) -> Self {
        assert_eq!(
            written.split('.').count(),
            meant.split('.').count(),
            "`{written}` and `{meant}` are not on the same level"
        );
        let parts = written.split('.').zip(meant.split('.'));
        self.aliases.push(Alias {
            parts: parts.map(|(w, m)| (w.to_owned(), m.to_owned())).collect(),
        });
        self
    }

    /// Replaces aliases by the names that they stand for.
    pub(super) fn resolve<'a>(&'a self, parts: &mut [(usize, &'a str)]) {
        for alias in &self.aliases {
            let begins = parts.len() >= alias.parts.len()
                && alias
                    .parts
                    .iter()
                    .zip(&*parts)
                    .all(|((written, _), (_, part))| {
                        written == part
                            || (self.ignore_key_case && written.eq_ignore_ascii_case(part))
                    });
            if begins {
                for ((_, meant), (_, part)) in alias.parts.iter().zip(&mut *parts) {
                    *part = meant;
                }
            }
        }
    }

    /// The key without the prefix, if it has it.
    pub(super) fn strip_prefix<'a>(&self, key: &'a str) -> Option<&'a str> {
        if !self.ignore_prefix_case {
            return key.strip_prefix(&self.prefix);
        }
        let head = key.get(..self.prefix.len())?;
        head.eq_ignore_ascii_case(&self.prefix)
            .then(|| &key[self.prefix.len()..])
    }
}

/// A part of a key in the form in which it is compared.
pub(super) fn fold(name: &str, ignore_case: bool) -> String {
    if ignore_case {
        name.to_ascii_lowercase()
    } else {
        name.to_owned()
    }
}
