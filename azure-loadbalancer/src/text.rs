//! Texts of JSON or, with feature `yaml`, of YAML: their documents, and the lines of their values.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

/// The maximum size of a text, in bytes. A cluster's services take a hundredth of this.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Returns an error with its causes, separated by `: `.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}

/// A text parsed into its documents.
#[derive(Clone, Debug)]
pub struct Documents<'t> {
    text: &'t str,
    documents: Vec<Value>,
}

impl<'t> Documents<'t> {
    /// Parses a text: a series of JSON documents, or YAML documents. Empty ones are skipped.
    ///
    /// # Errors
    ///
    /// The text is neither, or empty.
    pub fn read(text: &'t str) -> Result<Self, NoDocument> {
        // Editors of Windows write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let looks_like_json = text.trim_start().starts_with(['{', '[']);
        let documents = match json(text) {
            Ok(documents) => documents,
            Err(error) => match yaml(text) {
                Some(Ok(documents)) => documents,
                Some(Err(why)) if !looks_like_json => {
                    return Err(NoDocument(format!("it is not YAML: {why}")));
                }
                _ => return Err(NoDocument(format!("it is not JSON: {error}"))),
            },
        };
        if documents.is_empty() {
            return Err(NoDocument("it has no document".to_owned()));
        }
        Ok(Self { text, documents })
    }

    /// Returns the documents.
    pub fn all(&self) -> &[Value] {
        &self.documents
    }

    /// Returns the line of a path's value in the document with this index, from 1, if it is known.
    pub fn line_of(&self, document: usize, path: &[String]) -> Option<usize> {
        line_of(self.text, document, path)
    }
}

fn json(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let documents: Result<Vec<_>, _> = serde_json::Deserializer::from_str(text)
        .into_iter::<Value>()
        .collect();
    Ok(documents?
        .into_iter()
        .filter(|one| !one.is_null())
        .collect())
}

/// Parses YAML. `None` without feature `yaml`.
#[cfg(feature = "yaml")]
fn yaml(text: &str) -> Option<Result<Vec<Value>, String>> {
    let most = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    let read = |json: &String| serde_json::from_str(json).map_err(|error| error.to_string());
    let documents = proxy_model::yaml::documents(text, most);
    Some(documents.and_then(|all| all.iter().map(read).collect()))
}

#[cfg(not(feature = "yaml"))]
fn yaml(_: &str) -> Option<Result<Vec<Value>, String>> {
    None
}

#[cfg(feature = "yaml")]
fn line_of(text: &str, document: usize, path: &[String]) -> Option<usize> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    proxy_model::yaml::line_of(text, document, &path)
}

#[cfg(not(feature = "yaml"))]
fn line_of(_: &str, _: usize, _: &[String]) -> Option<usize> {
    None
}

/// The error of a text without a readable document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoDocument(String);

/// A value of an unexpected form in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    path: Vec<String>,
    why: String,
}

impl Misread {
    /// Returns the path of the value: keys, and indexes of lists.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Moves the error below a path in an enclosing document.
    #[must_use]
    pub fn below(mut self, parts: impl IntoIterator<Item = String>) -> Self {
        self.path.splice(0..0, parts);
        self
    }
}

impl std::error::Error for Misread {}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.path.iter().enumerate() {
            let is_index = part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty();
            let is_plain = part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            match (is_index, is_plain, index) {
                (true, ..) => write!(f, "[{part}]")?,
                (false, false, _) => write!(f, "[{part:?}]")?,
                (false, true, 0) => f.write_str(part)?,
                (false, true, _) => write!(f, ".{part}")?,
            }
        }
        match self.path.is_empty() {
            true => f.write_str(&self.why),
            false => write!(f, ": {}", self.why),
        }
    }
}

/// Deserialises a value.
///
/// # Errors
///
/// The first part of unexpected form.
pub fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T, Misread> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let parts = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        Misread {
            path: parts.collect(),
            why: worded(&error.inner().to_string()),
        }
    })
}

/// Rewords the parser's expectation in the terms of the document instead of those of the program.
fn worded(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "a map" | "map" => "an object",
        "a sequence" => "a list",
        "a string" => "a text",
        "a boolean" => "true or false",
        "u16" => "a number from 0 to 65535",
        "u8" => "a number from 0 to 255",
        "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i32" | "i64" => "a whole number",
        // The name of a struct means nothing to a reader.
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{found}expected {expected}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "it is read, and nothing else")]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is read, and nothing else")]
    struct Inner {
        port: u16,
        name: Option<String>,
    }

    #[test]
    fn mistakes_have_their_path_and_plain_words() {
        for (value, expected) in [
            (
                json!({"inner": [{"port": 1}, {"port": 70_000}]}),
                "inner[1].port: invalid value: integer `70000`, expected a number from 0 to 65535",
            ),
            (
                json!({"inner": [[]]}),
                "inner[0]: invalid length 0, expected an object",
            ),
            (
                json!({"inner": 3}),
                "inner: invalid type: integer `3`, expected a list",
            ),
            (json!({"inner": [{}]}), "inner[0]: missing field `port`"),
            (
                json!({"inner": [{"port": 1, "name": true}]}),
                "inner[0].name: invalid type: boolean `true`, expected a text",
            ),
            (json!([]), "invalid length 0, expected an object"),
        ] {
            let error = read_value::<Outer>(&value).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let error = read_value::<Outer>(&json!({"inner": 3})).unwrap_err();
        let error = error.below(["items".to_owned(), "0".to_owned(), "a.b/c".to_owned()]);
        assert!(
            error.to_string().starts_with("items[0][\"a.b/c\"].inner: "),
            "{error}"
        );
    }

    #[test]
    fn json_is_read_with_and_without_yaml() {
        let read = |text: &str| Documents::read(text).map(|read| read.documents);
        assert_eq!(
            read("\u{feff}{\"a\":1}\n[2]").unwrap(),
            [json!({"a": 1}), json!([2])]
        );
        assert_eq!(
            read("null"),
            Err(NoDocument("it has no document".to_owned()))
        );
        let error = read("{\"a\":1").unwrap_err().to_string();
        assert!(
            error.starts_with("it is not JSON: EOF while parsing"),
            "{error}"
        );
    }

    #[cfg(feature = "yaml")]
    #[test]
    fn yaml_is_read_and_its_lines_are_known() {
        let text = "\u{feff}# made by hand\n---\na:\n- b: 1\n---\n---\n{c: [2]}\n";
        let read = Documents::read(text).unwrap();
        assert_eq!(read.all(), [json!({"a": [{"b": 1}]}), json!({"c": [2]})]);
        let path = |parts: &[&str]| {
            parts
                .iter()
                .map(|part| (*part).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(read.line_of(0, &path(&["a", "0", "b"])), Some(4));
        assert_eq!(read.line_of(1, &path(&["c"])), Some(7));
        // A mistake in a text that looks like JSON is reported as one of JSON.
        for (text, expected) in [
            ("a: [1\n", "it is not YAML: "),
            ("{\"a\": \n", "it is not JSON: "),
            ("# nothing\n", "it has no document"),
            ("", "it has no document"),
            ("a: 1\na: 2\n", "the key \"a\" is there twice (line 2"),
        ] {
            let error = Documents::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
