//! YAML documents, and JSON read as YAML.

use proxy_model::json::parse_document;
use proxy_model::yaml;
use serde_json::Value;

use crate::input::{check_message, check_problems, text};

/// Maximum size of a text and of its documents, in bytes. Small, so that aliases reach it.
const MOST_BYTES: usize = 4_096;

/// Separator of the two texts of an input.
const BETWEEN: &str = "\n=====\n";

/// Fuzzes the YAML reader with one or two texts.
///
/// * Each document is written as JSON. All together fit the limit, whatever aliases stand for.
/// * A reader of one document reads the first of the documents.
/// * A JSON text has the same value as YAML, if it is valid YAML.
/// * Every key of the result has a line.
/// * Two concatenated texts have the documents of both.
/// * Errors are short and have a line.
pub fn yaml(data: &[u8]) {
    let whole = text(data);
    let mut parts = whole.splitn(2, BETWEEN);
    let first = parts.next().unwrap_or_default();
    let written = documents(first);
    agrees_with_one(first, written.as_deref());
    let Some(read) = written.map(|all| values(&all)) else {
        return;
    };
    agrees_with_json(first, &read);
    keys_have_lines(first, &read);
    if let Some(second) = parts.next() {
        follow_each_other(first, &read, second);
    }
}

/// Returns the documents, each as JSON.
fn documents(text: &str) -> Option<Vec<String>> {
    match yaml::documents(text, MOST_BYTES) {
        Ok(written) => {
            let length: usize = written.iter().map(String::len).sum();
            assert!(length <= MOST_BYTES, "{length} bytes of {text:?}");
            Some(written)
        }
        Err(why) => {
            check_message(&why);
            assert!(why.contains("line ") || why.contains(" bytes"), "{why}");
            None
        }
    }
}

fn values(written: &[String]) -> Vec<Value> {
    let value = |json: &String| {
        let value = serde_json::from_str::<Value>(json);
        value.unwrap_or_else(|error| panic!("{json}: {error}"))
    };
    written.iter().map(value).collect()
}

/// Asserts that repeated keys are rejected by the reader of several documents, and kept by the
/// reader of one.
fn agrees_with_one(text: &str, read: Option<&[String]>) {
    match (yaml::parse(text), read) {
        (Ok(one), Some([only])) => {
            let only = parse_document(only);
            let only = only.unwrap_or_else(|problems| panic!("{text:?}: {problems}"));
            assert_eq!(one, only, "{text:?}");
        }
        (Ok(_), Some(several)) => assert!(several.is_empty(), "{text:?}: {several:?}"),
        (Ok(_), None) => {}
        (Err(problems), read) => {
            check_problems(&problems, "");
            let is_one = read.is_some_and(|read| read.len() == 1);
            let said = problems.to_string();
            assert!(
                !is_one || said.contains("second document"),
                "{text:?}: {said}"
            );
        }
    }
}

fn agrees_with_json(text: &str, read: &[Value]) {
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        return;
    };
    match read {
        [yaml] => assert!(is_alike(&json, yaml), "{text:?}: {yaml}"),
        _ => assert!(json.is_null(), "{text:?}: {read:?}"),
    }
}

/// Numbers are compared as JavaScript reads them.
fn is_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_f64(), other.as_f64()) {
            // Readers of long numbers differ in their last digit.
            (Some(one), Some(other)) => (one - other).abs() <= one.abs() * 1e-12,
            (one, other) => one == other,
        },
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_alike(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|other| is_alike(value, other))
            };
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

fn keys_have_lines(text: &str, documents: &[Value]) {
    let lines = text.lines().count() + 1;
    for (index, document) in documents.iter().enumerate() {
        for key in document.as_object().into_iter().flat_map(|all| all.keys()) {
            let line = yaml::line_of(text, index, &[key]);
            assert!(
                line.is_some_and(|line| (1..=lines).contains(&line)),
                "{key:?} of document {index} of {text:?}: {line:?}"
            );
        }
    }
}

fn follow_each_other(first: &str, documents_of_first: &[Value], second: &str) {
    // Directives and marks are valid only at the beginning of a text.
    if second.contains(['%', '\u{feff}']) {
        return;
    }
    let Some(of_second) = documents(second) else {
        return;
    };
    let both = format!("{first}\n---\n{second}");
    let Ok(written) = yaml::documents(&both, MOST_BYTES) else {
        assert!(both.len() > MOST_BYTES, "{both:?}");
        return;
    };
    let expected = [documents_of_first, &values(&of_second)].concat();
    assert_eq!(values(&written), expected, "{both:?}");
}
