//! Single values, converted as .NET's binder converts them.

use crate::config::{HttpVersion, VersionPolicy};
use crate::suggest::{did_you_mean, listed, shortened};
use crate::time_span::{ParseTimeSpanError, TimeSpan};

use super::node::Node;

/// The reason why a node is not a value of the expected type.
pub(super) struct TypeMismatch {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
}

impl TypeMismatch {
    fn new(code: &'static str, message: String) -> Self {
        Self {
            code,
            message,
            suggestion: None,
        }
    }

    /// Creates the mismatch of a node of another type.
    pub(super) fn wrong_type(expected: &str, node: &Node) -> Self {
        Self::new(
            "wrong_type",
            format!("expected {expected}, found {}", node.kind()),
        )
    }
}

/// Reads text. Numbers and booleans are read in their written form.
pub(super) fn text(node: &Node) -> Result<String, TypeMismatch> {
    match node {
        Node::Text(text) => Ok(text.clone()),
        Node::Boolean(value) => Ok(value.to_string()),
        Node::Number(number) => {
            // A larger number has been rounded already.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if number.is_f64() && number.as_f64().is_none_or(|value| value.abs() >= EXACT) {
                let mut mismatch = TypeMismatch::new(
                    "inexact_number",
                    "the number is too large to be kept".to_owned(),
                );
                mismatch.suggestion = Some("put it in quotes".to_owned());
                return Err(mismatch);
            }
            Ok(number.to_string())
        }
        Node::Null | Node::List(_) | Node::Object(_) => Err(TypeMismatch::wrong_type("text", node)),
    }
}

/// Reads a boolean: `true` or `false`, in any case, with quotes or without.
pub(super) fn boolean(node: &Node) -> Result<bool, TypeMismatch> {
    match node {
        Node::Boolean(value) => Ok(*value),
        Node::Text(text) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
        Node::Text(text) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
        Node::Text(text) => Err(TypeMismatch::new(
            "invalid_boolean",
            format!("`{}` is neither `true` nor `false`", shortened(text)),
        )),
        _ => Err(TypeMismatch::wrong_type("true or false", node)),
    }
}

/// A whole number, with quotes or without.
pub(super) fn integer(node: &Node) -> Result<i64, TypeMismatch> {
    let not_whole = |text: &str| {
        TypeMismatch::new(
            "invalid_number",
            format!("`{}` is not a whole number", shortened(text)),
        )
    };
    match node {
        Node::Number(number) => number
            .as_i64()
            .ok_or_else(|| not_whole(&number.to_string())),
        Node::Text(text) => text.trim().parse().map_err(|_| {
            let mut mismatch = not_whole(text);
            mismatch.suggestion = bytes(text)
                .map(|bytes| format!("write the number without a unit; in bytes it is `{bytes}`"));
            mismatch
        }),
        _ => Err(TypeMismatch::wrong_type("a whole number", node)),
    }
}

/// The number of bytes of a size with a unit: `10MB`, `8 MiB`, and `1k` as nginx means it.
fn bytes(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 9] = [
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ];
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.parse::<i64>().ok()?.checked_mul(*factor)
}

/// A number, with quotes or without. Never infinite.
pub(super) fn number(node: &Node) -> Result<f64, TypeMismatch> {
    let found = match node {
        Node::Number(number) => number.as_f64(),
        Node::Text(text) => text.trim().parse().ok(),
        _ => return Err(TypeMismatch::wrong_type("a number", node)),
    };
    found.filter(|number| number.is_finite()).ok_or_else(|| {
        let text = text(node).unwrap_or_default();
        TypeMismatch::new(
            "invalid_number",
            format!("`{}` is not a number", shortened(&text)),
        )
    })
}

/// A length of time.
pub(super) fn time_span(node: &Node) -> Result<TimeSpan, TypeMismatch> {
    time_span_or(node, "invalid_time_span")
}

/// A length of time that must be longer than none. Less than none has the code of none: `not_positive`.
pub(super) fn positive_time_span(node: &Node) -> Result<TimeSpan, TypeMismatch> {
    time_span_or(node, "not_positive")
}

/// Reads a length of time. A negative one has the code `negative`.
fn time_span_or(node: &Node, negative: &'static str) -> Result<TimeSpan, TypeMismatch> {
    let text = match node {
        // Without quotes it is a bare number, for which the parser reports the problem.
        Node::Number(number) => number.to_string(),
        Node::Text(text) => text.clone(),
        _ => return Err(TypeMismatch::wrong_type("a length of time", node)),
    };
    text.parse::<TimeSpan>().map_err(|error| TypeMismatch {
        code: match error {
            ParseTimeSpanError::Negative(_) => negative,
            _ => "invalid_time_span",
        },
        message: error.to_string(),
        suggestion: Some(error.suggestion()),
    })
}

/// One of `names`, in any case.
pub(super) fn choice<T: Clone>(node: &Node, names: &[(&str, T)]) -> Result<T, TypeMismatch> {
    let text = text(node)?;
    let wanted = text.trim();
    let found = names
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if let Some((_, value)) = found {
        return Ok(value.clone());
    }
    let names = || names.iter().map(|(name, _)| *name);
    let mut mismatch = TypeMismatch::new(
        "unknown_value",
        format!("`{}` is not one of {}", shortened(&text), listed(names())),
    );
    // Another number is no slip of the pen.
    if wanted.parse::<f64>().is_err() {
        mismatch.suggestion = did_you_mean(wanted, names());
    }
    Err(mismatch)
}

/// The versions of HTTP by their names. Without a point they mean `.0`, as in .NET.
pub(super) const HTTP_VERSIONS: [(&str, HttpVersion); 7] = [
    ("1.0", HttpVersion::Http10),
    ("1.1", HttpVersion::Http11),
    ("2", HttpVersion::Http2),
    ("3", HttpVersion::Http3),
    ("1", HttpVersion::Http10),
    ("2.0", HttpVersion::Http2),
    ("3.0", HttpVersion::Http3),
];

/// The version policies by their names.
pub(super) const VERSION_POLICIES: [(&str, VersionPolicy); 3] = [
    (
        "RequestVersionOrLower",
        VersionPolicy::RequestVersionOrLower,
    ),
    (
        "RequestVersionOrHigher",
        VersionPolicy::RequestVersionOrHigher,
    ),
    ("RequestVersionExact", VersionPolicy::RequestVersionExact),
];
