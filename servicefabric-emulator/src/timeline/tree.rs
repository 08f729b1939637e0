//! A script as a tree of values, from TOML or JSON, with the lines of the values.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::de::{DeTable, DeValue};

use super::problem::Problem;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    /// The line of its start, from 1. Only TOML has lines.
    pub(super) line: Option<usize>,
    pub(super) kind: Kind,
}

/// The value of a node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
    List(Vec<Tree>),
    /// Keys and values; each key is unique.
    Table(Vec<(String, Tree)>),
    /// `null`, dates, numbers beyond 64 bits: values that a script cannot use.
    Other(&'static str),
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) | Self::Number(_) => "a number",
            Self::Bool(_) => "a truth value",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(name) => name,
        }
    }
}

impl Tree {
    /// Parses JSON if the text begins with a brace, else TOML.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text)
                .map_err(|error| broken("JSON", error.line(), &error));
        }
        match DeTable::parse(text) {
            Ok(table) => {
                let lines = Lines::new(text);
                Ok(lines.table(table.get_ref(), 1))
            }
            Err(error) => {
                let line = error
                    .span()
                    .map_or(1, |span| Lines::new(text).of(span.start));
                Err(broken("TOML", line, &error.message()))
            }
        }
    }
}

fn broken(language: &str, line: usize, error: &dyn fmt::Display) -> Problem {
    Problem {
        line: Some(line),
        place: String::new(),
        message: format!("this is no {language}: {error}"),
        suggestion: None,
    }
}

/// The start offsets of the lines of a text.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(
            std::iter::once(0)
                .chain(breaks.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    /// Returns the line of a byte offset.
    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }

    fn table(&self, table: &DeTable<'_>, line: usize) -> Tree {
        let entries = table.iter().map(|(key, value)| {
            // The line of the key: a table's own span covers only its header, or nothing if it has none.
            (
                key.get_ref().to_string(),
                self.value(value.get_ref(), self.of(key.span().start)),
            )
        });
        Tree {
            line: Some(line),
            kind: Kind::Table(entries.collect()),
        }
    }

    fn value(&self, value: &DeValue<'_>, line: usize) -> Tree {
        let kind = match value {
            DeValue::String(text) => Kind::Text(text.to_string()),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Kind::Integer(number),
                    Err(_) => Kind::Other("a number beyond 64 bits"),
                }
            }
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Kind::Number(number),
                Err(_) => Kind::Other("a number that cannot be read"),
            },
            DeValue::Boolean(truth) => Kind::Bool(*truth),
            DeValue::Datetime(_) => Kind::Other("a date"),
            DeValue::Array(items) => {
                let items = items
                    .iter()
                    .map(|item| self.value(item.get_ref(), self.of(item.span().start)));
                Kind::List(items.collect())
            }
            DeValue::Table(table) => return self.table(table, line),
        };
        Tree {
            line: Some(line),
            kind,
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = deserializer.deserialize_any(Values)?;
        Ok(Self { line: None, kind })
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Kind, E> {
        Ok(i64::try_from(number).map_or(Kind::Other("a number beyond 64 bits"), Kind::Integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Kind, E> {
        Ok(Kind::Number(number))
    }

    fn visit_unit<E: Error>(self) -> Result<Kind, E> {
        Ok(Kind::Other("null"))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Kind, S::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Kind::List(list))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Kind, M::Error> {
        let mut seen = std::collections::HashSet::new();
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Tree>()? {
            if !seen.insert(key.clone()) {
                return Err(M::Error::custom(format_args!(
                    "the key `{key}` is there twice"
                )));
            }
            entries.push((key, value));
        }
        Ok(Kind::Table(entries))
    }
}
