//! YAML, converted to JSON, so that both have one reader and the same problems.
//!
//! Every JSON document is a YAML document too. Scalars without quotes are interpreted by the core schema of
//! YAML 1.2, so `no` is a text. Tags and merge keys are rejected rather than ignored. A byte order mark in
//! front is skipped.
//!
//! [`parse`] reads one document, [`documents`] reads several, and [`line_of`] finds the line of a value.

mod place;

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

pub use self::place::line_of;
use crate::json::{Node, parse_document};
use crate::problem::{Problem, Problems};

/// Maximum size of a single document, as written and with its aliases expanded.
const MOST_BYTES: usize = 16 << 20;

/// The deepest nesting.
const MOST_LEVELS: usize = 64;

/// Reads a document of at most 16 MiB. A text without any is an empty object.
///
/// # Errors
///
/// Returns `invalid_yaml`, with line and column, if the text is not YAML, or has a second document, tags,
/// merge keys, or more than 64 levels. Returns `document_too_large` if it is larger than allowed. Readers
/// report duplicate keys.
pub fn parse(text: &str) -> Result<Node, Problems> {
    if text.len() > MOST_BYTES {
        let message = format!(
            "the document has {} bytes, more than {MOST_BYTES}",
            text.len()
        );
        return Err(Problem::error("", "document_too_large", message).into());
    }
    let json = to_json(text).map_err(|message| Problem::error("", "invalid_yaml", message))?;
    parse_document(&json)
}

/// Returns the documents of a text, each as JSON. Empty documents, such as one between two separators, are
/// left out.
///
/// # Errors
///
/// The errors of [`parse`], in one sentence with line and column, except that several documents are
/// allowed. A key that occurs twice in an object is an error. `most_bytes` limits the text, and all
/// documents together with their aliases expanded.
pub fn documents(text: &str, most_bytes: usize) -> Result<Vec<String>, String> {
    if text.len() > most_bytes {
        return Err(format!("it has more than {most_bytes} bytes"));
    }
    let mut writer = Writer {
        most_bytes,
        separate: Some(Vec::new()),
        ..Writer::default()
    };
    writer.read(text)?;
    Ok(writer.separate.unwrap_or_default())
}

/// A list or an object that is being written.
struct Open {
    is_object: bool,
    /// Keys and values so far.
    count: usize,
    anchor: usize,
    start: usize,
    /// The keys so far. A repeated key is rejected.
    keys: Option<HashSet<String>>,
}

#[derive(Default)]
struct Writer {
    out: String,
    most_bytes: usize,
    /// The documents so far, if there may be several, and their bytes.
    separate: Option<Vec<String>>,
    written: usize,
    open: Vec<Open>,
    /// The content of each anchor.
    anchors: HashMap<usize, String>,
    /// Total length of the anchors. The content of an anchor inside an anchor is counted for both.
    anchored: usize,
    has_document: bool,
}

fn to_json(text: &str) -> Result<String, String> {
    let mut writer = Writer {
        out: String::with_capacity(text.len() + text.len() / 4),
        most_bytes: MOST_BYTES,
        ..Writer::default()
    };
    writer.read(text)?;
    match writer.has_document {
        true => Ok(writer.out),
        // Nothing but comments: no settings.
        false => Ok("{}".to_owned()),
    }
}

/// The text without the mark that editors of Windows write in front.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn explained(error: &ScanError) -> String {
    let marker = error.marker();
    let what: String = error.info().chars().take(200).collect();
    format!(
        "{what} (line {}, column {})",
        marker.line(),
        marker.col() + 1
    )
}

impl Writer {
    fn read(&mut self, text: &str) -> Result<(), String> {
        for event in Parser::new_from_str(unmarked(text)) {
            let (event, span) = event.map_err(|error| explained(&error))?;
            let (line, column) = (span.start.line(), span.start.col() + 1);
            self.event(event)
                .map_err(|why| format!("{why} (line {line}, column {column})"))?;
            if self.written + self.out.len() > self.most_bytes {
                let most = self.most_bytes;
                return Err(format!("its aliases make it larger than {most} bytes"));
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_) if self.has_document && self.separate.is_none() => {
                return Err("there is a second document".to_owned());
            }
            Event::DocumentStart(_) => self.has_document = true,
            Event::DocumentEnd => self.end_document(),
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    return Err("tags are not supported".to_owned());
                }
                self.scalar(&text, style, anchor)?;
            }
            Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err("tags are not supported".to_owned());
            }
            Event::SequenceStart(anchor, None) => self.begin(false, anchor)?,
            Event::MappingStart(anchor, None) => self.begin(true, anchor)?,
            Event::SequenceEnd => self.end(']')?,
            Event::MappingEnd => self.end('}')?,
            Event::Alias(anchor) => {
                self.before(false)?;
                let value = self.anchors.get(&anchor);
                let value = value.ok_or("an alias refers to what it is in itself")?;
                self.out.push_str(value);
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
        Ok(())
    }

    /// Stores a finished document, if there may be several. Anchors are those of one document.
    fn end_document(&mut self) {
        let Some(documents) = &mut self.separate else {
            return;
        };
        let document = std::mem::take(&mut self.out);
        self.written += document.len();
        if !document.is_empty() && document != "null" {
            documents.push(document);
        }
        self.anchors.clear();
        self.anchored = 0;
    }

    /// Returns true if a key comes next.
    fn is_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.is_object && open.count % 2 == 0)
    }

    /// Writes what stands before a key or a value.
    fn before(&mut self, may_be_key: bool) -> Result<(), String> {
        if self.is_key() && !may_be_key {
            return Err("a key is a text".to_owned());
        }
        if let Some(open) = self.open.last_mut() {
            if open.is_object && open.count % 2 == 1 {
                self.out.push(':');
            } else if open.count > 0 {
                self.out.push(',');
            }
            open.count += 1;
        }
        Ok(())
    }

    fn begin(&mut self, is_object: bool, anchor: usize) -> Result<(), String> {
        if self.open.len() == MOST_LEVELS {
            return Err(format!("it has more than {MOST_LEVELS} levels"));
        }
        self.before(false)?;
        self.open.push(Open {
            is_object,
            count: 0,
            anchor,
            start: self.out.len(),
            keys: (is_object && self.separate.is_some()).then(HashSet::new),
        });
        self.out.push(if is_object { '{' } else { '[' });
        Ok(())
    }

    fn end(&mut self, bracket: char) -> Result<(), String> {
        self.out.push(bracket);
        match self.open.pop() {
            Some(open) => self.anchor(open.anchor, open.start),
            None => Ok(()),
        }
    }

    fn anchor(&mut self, anchor: usize, start: usize) -> Result<(), String> {
        // 0: it has none.
        if anchor == 0 {
            return Ok(());
        }
        let value = self.out.get(start..).unwrap_or_default();
        self.anchored += value.len();
        if self.anchored > self.most_bytes {
            let most = self.most_bytes;
            return Err(format!("its anchors have more than {most} bytes together"));
        }
        self.anchors.insert(anchor, value.to_owned());
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize) -> Result<(), String> {
        let is_key = self.is_key();
        let is_plain = style == ScalarStyle::Plain;
        if is_key && is_plain && text == "<<" {
            return Err("merge keys are not supported".to_owned());
        }
        if is_key
            && let Some(keys) = self.open.last_mut().and_then(|open| open.keys.as_mut())
            && !keys.insert(text.to_owned())
        {
            let key: String = text.chars().take(60).collect();
            return Err(format!("the key {key:?} is there twice"));
        }
        self.before(true)?;
        let start = self.out.len();
        match plain_json(text).filter(|_| is_plain && !is_key) {
            Some(json) => self.out.push_str(&json),
            None => write_text(&mut self.out, text),
        }
        self.anchor(anchor, start)
    }
}

/// Returns the JSON form of an unquoted scalar that is not a text:
/// <https://yaml.org/spec/1.2.2/#103-core-schema>.
fn plain_json(text: &str) -> Option<String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some("null".to_owned()),
        "true" | "True" | "TRUE" => return Some("true".to_owned()),
        "false" | "False" | "FALSE" => return Some("false".to_owned()),
        _ => {}
    }
    let radix = |prefix: &str, radix| {
        let digits = text.strip_prefix(prefix)?;
        u64::from_str_radix(digits, radix)
            .ok()
            .filter(|_| !digits.starts_with('+'))
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Some(number.to_string());
    }
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && text.bytes().any(|byte| byte.is_ascii_digit());
    if !is_number {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.to_string());
    }
    // A float would round it.
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.to_string());
    }
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .map(|number| number.to_string())
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(&to_json(text).unwrap()).unwrap()
    }

    #[test]
    fn scalars_are_what_the_core_schema_says() {
        let text = "a: no\nb: 010\nc: 0x10\nd: 1.5\ne: ~\nf: true\ng: '1'\nh: 127.0.0.1:80\ni: .5\nj: 1e3\n1: one\n";
        let expected = json!({
            "a": "no", "b": 10, "c": 16, "d": 1.5, "e": null, "f": true, "g": "1", "h": "127.0.0.1:80",
            "i": 0.5, "j": 1000, "1": "one",
        });
        let found = read(text);
        assert_eq!(found["j"].as_f64(), Some(1000.0));
        assert_eq!(
            to_json("18446744073709551615").unwrap(),
            "18446744073709551615"
        );
        for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "1"] {
            assert_eq!(found[key], expected[key], "{key}");
        }
    }

    #[test]
    fn lists_objects_and_aliases_are_written_out() {
        let text = "x: &x {a: [1, 2]}\ny: *x\nz:\n- &t text\n- *t\nw: |\n  two\n  lines\n";
        let expected = json!({"x": {"a": [1, 2]}, "y": {"a": [1, 2]}, "z": ["text", "text"], "w": "two\nlines\n"});
        assert_eq!(read(text), expected);
        assert_eq!(read("# nothing\n"), json!({}));
    }

    #[test]
    fn what_is_no_yaml_or_more_than_that_is_rejected_with_its_place() {
        for (text, expected) in [
            ("a: [1\n", "line"),
            ("a: 1\n---\nb: 2\n", "second document"),
            ("a: !!str 1\n", "tags"),
            ("base: &b {a: 1}\nc: {<<: *b}\n", "merge keys"),
            ("? [a]\n: 1\n", "a key is a text"),
        ] {
            let problems = parse(text).unwrap_err().to_string();
            assert!(problems.contains(expected), "{text:?}: {problems}");
        }
    }

    /// Nine levels of nine aliases each would expand to 387 million texts.
    #[test]
    fn aliases_do_not_explode() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert!(parse(&text).unwrap_err().to_string().contains("aliases"));
        assert!(parse(&"[".repeat(5000)).is_err());
    }

    #[test]
    fn several_documents_are_read_one_by_one() {
        let text = "\u{feff}---\n# Source: a chart\n---\na: &x 1\nb: *x\n---\n- 2\n...\n---\n";
        assert_eq!(documents(text, 1_000).unwrap(), [r#"{"a":1,"b":1}"#, "[2]"]);
        assert!(documents("# nothing\n", 1_000).unwrap().is_empty());
        for (text, expected) in [
            (
                "a: 1\nb: 2\na: 3\n",
                "the key \"a\" is there twice (line 3, column 1)",
            ),
            ("a: &x 1\n---\nb: *x\n", "line 3"),
            ("a: 1\n---\nb: [\n", "line"),
        ] {
            let rejected = documents(text, 1_000).unwrap_err();
            assert!(rejected.contains(expected), "{text:?}: {rejected}");
        }
        assert!(documents(&"- x\n".repeat(300), 1_000).is_err());
        // All documents have one limit together.
        let long = "a: &a [x, x, x, x, x]\nb: [*a, *a, *a, *a]\n---\n".repeat(9);
        let rejected = documents(&long, 500).unwrap_err();
        assert!(rejected.contains("aliases"), "{rejected}");
    }

    /// Each of them would keep the whole document once more.
    #[test]
    fn anchors_in_anchors_do_not_pile_up() {
        let long = "x".repeat(1 << 20);
        let nested = |levels: usize| {
            let open: String = (0..levels).map(|level| format!("&a{level} [")).collect();
            format!("{open}{long}{}", "]".repeat(levels))
        };
        assert!(parse(&nested(8)).is_ok());
        let rejected = parse(&nested(40)).unwrap_err().to_string();
        assert!(rejected.contains("anchors"), "{rejected}");
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[-a-z0-9:&*!{}\\[\\],'\"|>#\n \t]{0,200}") {
            let _ = parse(&text);
            let _ = documents(&text, 1_000);
            let _ = line_of(&text, 0, &["a", "0"]);
        }

        #[test]
        fn json_is_yaml(texts in prop::collection::vec("\\PC{0,12}", 0..6), number in any::<i32>()) {
            let document = json!({"texts": texts, "number": number});
            prop_assert_eq!(read(&document.to_string()), document);
        }
    }
}
