//! The reader of a tree, which collects all errors.

use super::problem::Problem;
use super::tree::{Kind, Tree};
use crate::hosting::{Span, closest};

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct ScriptProblems(pub(super) Vec<Problem>);

impl ScriptProblems {
    pub(super) fn add(
        &mut self,
        line: Option<usize>,
        place: &str,
        message: String,
        suggestion: Option<String>,
    ) {
        self.0.push(Problem {
            line,
            place: place.to_owned(),
            message,
            suggestion,
        });
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Value<'t> {
    pub(super) tree: &'t Tree,
    pub(super) place: String,
}

impl<'t> Value<'t> {
    pub(super) fn root(tree: &'t Tree) -> Self {
        Self {
            tree,
            place: String::new(),
        }
    }

    pub(super) fn wrong(
        &self,
        problems: &mut ScriptProblems,
        message: String,
        suggestion: Option<String>,
    ) {
        problems.add(self.tree.line, &self.place, message, suggestion);
    }

    /// Reports a value of an unexpected type.
    fn expected(&self, problems: &mut ScriptProblems, expected: &str, example: &str) {
        let found = self.tree.kind.name();
        let message = format!("expected {expected}, found {found}");
        self.wrong(
            problems,
            message,
            Some(format!("write for example {example}")),
        );
    }

    pub(super) fn text(&self, problems: &mut ScriptProblems) -> Option<&'t str> {
        match &self.tree.kind {
            Kind::Text(text) if !text.is_empty() => Some(text),
            Kind::Text(_) => {
                self.wrong(problems, "this must not be empty".to_owned(), None);
                None
            }
            _ => {
                self.expected(problems, "a text", "\"P\"");
                None
            }
        }
    }

    pub(super) fn truth(&self, problems: &mut ScriptProblems) -> Option<bool> {
        if let Kind::Bool(truth) = self.tree.kind {
            return Some(truth);
        }
        self.expected(problems, "true or false", "true");
        None
    }

    pub(super) fn count(&self, problems: &mut ScriptProblems) -> Option<u32> {
        if let Kind::Integer(number) = self.tree.kind
            && let Ok(count) = u32::try_from(number)
        {
            return Some(count);
        }
        self.expected(problems, "a whole number from 0 to 4294967295", "3");
        None
    }

    pub(super) fn exit_code(&self, problems: &mut ScriptProblems) -> Option<i32> {
        if let Kind::Integer(number) = self.tree.kind
            && let Ok(code) = i32::try_from(number)
        {
            return Some(code);
        }
        self.expected(problems, "an exit code", "1");
        None
    }

    pub(super) fn span(&self, problems: &mut ScriptProblems) -> Option<Span> {
        let span = match &self.tree.kind {
            Kind::Text(text) => Span::parse(text).ok(),
            Kind::Integer(secs) => u64::try_from(*secs).ok().map(Span::from_secs),
            Kind::Number(secs) => Span::from_secs_f64(*secs),
            _ => None,
        };
        if span.is_none() {
            let message = match &self.tree.kind {
                Kind::Text(text) => format!("\"{text}\" is no length of time"),
                Kind::Integer(_) | Kind::Number(_) => {
                    "a length of time cannot be negative".to_owned()
                }
                other => format!("expected a length of time, found {}", other.name()),
            };
            let suggestion = "write seconds, such as 601, or a text, such as \"601s\", \"250ms\", \"10m\" or \"1h\"";
            self.wrong(problems, message, Some(suggestion.to_owned()));
        }
        span
    }

    pub(super) fn list(&self, problems: &mut ScriptProblems) -> Vec<Self> {
        let Kind::List(items) = &self.tree.kind else {
            self.expected(problems, "a list", "[]");
            return Vec::new();
        };
        let items = items.iter().enumerate();
        items
            .map(|(index, tree)| Value {
                tree,
                place: format!("{}[{index}]", self.place),
            })
            .collect()
    }

    /// Returns the entries of a table, each to be read once.
    pub(super) fn table(&self, problems: &mut ScriptProblems) -> Option<Table<'t>> {
        let Kind::Table(entries) = &self.tree.kind else {
            self.expected(problems, "a table", "{ }");
            return None;
        };
        Some(Table {
            value: self.clone(),
            entries,
            asked: Vec::new(),
        })
    }
}

/// A table that is being read.
#[derive(Debug)]
pub(super) struct Table<'t> {
    value: Value<'t>,
    entries: &'t [(String, Tree)],
    asked: Vec<&'static str>,
}

impl<'t> Table<'t> {
    /// Returns the value of a known key.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Value<'t>> {
        // The requested keys are the known ones, which `finish` compares with the written ones.
        self.asked.push(key);
        let (_, tree) = self.entries.iter().find(|(name, _)| name == key)?;
        Some(Value {
            tree,
            place: self.place_of(key),
        })
    }

    /// Returns the value of a required key.
    pub(super) fn need(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut ScriptProblems,
    ) -> Option<Value<'t>> {
        let found = self.get(key);
        if found.is_none() {
            let suggestion = format!("add {key} = {example}");
            self.value
                .wrong(problems, format!("`{key}` is missing"), Some(suggestion));
        }
        found
    }

    /// Returns all entries, whatever their names.
    pub(super) fn all(&self) -> Vec<(&'t str, Value<'t>)> {
        let entries = self.entries.iter();
        entries
            .map(|(key, tree)| {
                let place = self.place_of(key);
                (key.as_str(), Value { tree, place })
            })
            .collect()
    }

    /// Reports all unknown keys.
    pub(super) fn finish(self, problems: &mut ScriptProblems) {
        for (key, value) in self.all() {
            if !self.asked.contains(&key) {
                let known = self
                    .asked
                    .iter()
                    .map(|key| format!("`{key}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
                let suggestion = closest(key, self.asked.iter().copied()).map_or_else(
                    || format!("known here are {known}"),
                    |name| format!("did you mean `{name}`?"),
                );
                value.wrong(
                    problems,
                    "there is no such key".to_owned(),
                    Some(suggestion),
                );
            }
        }
    }

    pub(super) fn value(&self) -> &Value<'t> {
        &self.value
    }

    fn place_of(&self, key: &str) -> String {
        if self.value.place.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.value.place)
        }
    }
}
