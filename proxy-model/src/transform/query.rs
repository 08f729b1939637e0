//! Changes to the query.

use super::SetOrAppend;
use super::path::push_triplet;

/// A change to one parameter of the query.
///
/// Parameters are found by their decoded names, ignoring case. All others stay byte for byte as they were.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QueryChange {
    /// Sets or appends a value.
    Value {
        /// The parameter's name.
        name: Box<str>,
        /// The value.
        value: QueryValue,
        /// The choice between replacing existing values and adding to them.
        action: SetOrAppend,
    },
    /// Removes it.
    Remove(Box<str>),
}

/// The source of a query parameter's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QueryValue {
    /// The configuration.
    Text(Box<str>),
    /// The route parameter of this name. Without it nothing is changed.
    RouteValue(Box<str>),
}

/// Returns `query` with a value for `name`, after the last value of that name or, if there is none, at the
/// end.
pub(super) fn appended(query: &str, name: &str, value: &str) -> String {
    let pairs = pairs(query);
    let last = pairs.iter().rposition(|pair| is_named(pair, name));
    let at = last.map_or(pairs.len(), |last| last + 1);
    let mut out = joined(&pairs[..at]);
    separate(&mut out);
    push_encoded(&mut out, name);
    out.push('=');
    push_encoded(&mut out, value);
    for pair in &pairs[at..] {
        separate(&mut out);
        out.push_str(pair);
    }
    out
}

/// `query` with `value` as the only one of `name`, in the place of the first that there is.
pub(super) fn replaced(query: &str, name: &str, value: &str) -> String {
    let pairs = pairs(query);
    let Some(first) = pairs.iter().position(|pair| is_named(pair, name)) else {
        return appended(query, name, value);
    };
    let mut out = joined(&pairs[..first]);
    separate(&mut out);
    out.push_str(name_of(pairs[first]));
    out.push('=');
    push_encoded(&mut out, value);
    for pair in &pairs[first + 1..] {
        if !is_named(pair, name) {
            separate(&mut out);
            out.push_str(pair);
        }
    }
    out
}

/// `query` without `name`; `None` when nothing is left of it.
pub(super) fn removed(query: &str, name: &str) -> Option<String> {
    let mut pairs = pairs(query);
    pairs.retain(|pair| !is_named(pair, name));
    let out = joined(&pairs);
    (!out.is_empty()).then_some(out)
}

/// Returns true if there is a parameter `name`.
pub(super) fn contains(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| is_named(pair, name))
}

fn pairs(query: &str) -> Vec<&str> {
    match query {
        "" => Vec::new(),
        query => query.split('&').collect(),
    }
}

fn joined(pairs: &[&str]) -> String {
    pairs.join("&")
}

fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push('&');
    }
}

fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

fn is_named(pair: &str, name: &str) -> bool {
    let written = name_of(pair);
    if written.is_empty() && pair.is_empty() {
        // Between two `&` there is no parameter, not one with an empty name.
        return false;
    }
    if !written.contains(['%', '+']) {
        return crate::same_id(written, name);
    }
    let spaced = written.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy();
    crate::same_id(&decoded, name)
}

/// Appends `text` with everything percent-encoded that has a meaning of its own in a query.
///
/// What stays is what .NET's `UrlEncoder` leaves, which YARP uses.
fn push_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'(' | b')' | b'*' | b',' | b';' | b'@' => {
                out.push(char::from(byte));
            }
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => push_triplet(out, byte),
        }
    }
}
