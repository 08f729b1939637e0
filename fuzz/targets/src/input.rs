//! Shared helpers of the targets: inputs split into lines, and requests made from them.

use std::borrow::Cow;

use proxy_model::{Problem, Problems, RequestHead};

/// Maximum size of an input in bytes, which bounds every run.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// The input as text.
pub(crate) fn text(data: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&data[..data.len().min(MAX_BYTES)])
}

/// A request head, like one from a raw HTTP/1.1 head.
#[derive(Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) is_https: bool,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(&'a str, &'a [u8])>,
}

impl RequestHead for Head<'_> {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        self.query
    }

    fn authority(&self) -> &str {
        self.authority
    }

    fn is_https(&self) -> bool {
        self.is_https
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        for (other, value) in &self.headers {
            if *other == name && !each(value) {
                return;
            }
        }
    }
}

/// Asserts that every problem has a one-line message and a location inside `section`.
pub(crate) fn check_problems(problems: &Problems, section: &str) {
    for problem in problems {
        let inside = problem.pointer.strip_prefix(section);
        assert!(
            inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            "{problem:?} is not in {section}"
        );
        check_wording(problem);
    }
}

/// Asserts that a problem has a message, and that foreign text in it can neither forge log lines
/// nor control a terminal.
pub(crate) fn check_wording(problem: &Problem) {
    assert!(
        !problem.code.is_empty() && !problem.message.is_empty(),
        "{problem:?}"
    );
    let line = problem.to_string();
    let ends_or_turns = |c| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(
        !line.contains(|c: char| c.is_control() || ends_or_turns(c)),
        "{line:?}"
    );
}

/// Asserts that an error is a short message on one line without terminal control characters.
pub(crate) fn check_message(text: &str) {
    let ends_or_turns = |c| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(
        !text.is_empty() && text.chars().count() <= 2_000,
        "{text:?}"
    );
    assert!(
        !text.contains(|c: char| c.is_control() || ends_or_turns(c)),
        "{text:?}"
    );
}

/// Decodes bytes in Rust's notation: `\x1f`, `\\`, and any other byte as itself. Line ends only
/// serve readability and are dropped.
pub(crate) fn bytes_of_lines(text: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Vec::new();
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'\n' | b'\r', _) => {}
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                rest = after;
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                if let (Some(high), Some(low)) = (digit(high), digit(low)) {
                    bytes.push((high << 4 | low) as u8);
                    rest = after;
                } else {
                    bytes.push(*byte);
                }
            }
            _ => bytes.push(*byte),
        }
    }
    bytes
}

/// A single-threaded runtime with paused time, which jumps ahead when all tasks wait, so that
/// waiting takes no time.
pub(crate) fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be made")
}
