//! The protocol of Redis, version 2 (RESP): commands, and the replies that a limiter gets.

use std::fmt;
use std::io::Write as _;

/// The longest line of a reply, in bytes.
const LONGEST_LINE: usize = 4096;
/// The longest text of a reply, in bytes. The name of a script has 40.
const LONGEST_TEXT: usize = 1024;
/// The most elements of a list. A decision has 3.
const MOST_ELEMENTS: usize = 8;
/// The most bytes that can be there of a reply that is not complete.
#[cfg(any(test, feature = "testing"))]
pub(super) const LONGEST_PART: usize =
    LONGEST_LINE + MOST_ELEMENTS * (LONGEST_LINE + LONGEST_TEXT + 2);

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Text(Vec<u8>),
    Number(i64),
    /// The error that Redis tells.
    Error(String),
    List(Vec<Self>),
    Nothing,
}

/// A reply that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidReply;

impl fmt::Display for InvalidReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reply is none of Redis")
    }
}

impl std::error::Error for InvalidReply {}

/// Appends a command with its arguments.
pub(super) fn write_command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let _ = write!(out, "*{}\r\n", parts.len());
    for part in parts {
        let _ = write!(out, "${}\r\n", part.len());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads the reply that `input` begins with, and returns it with its length. `None` if there is more to come.
///
/// # Errors
///
/// The input is no reply, or one that no limiter gets.
pub(super) fn read_reply(input: &[u8]) -> Result<Option<(Reply, usize)>, InvalidReply> {
    read(input, true)
}

fn read(input: &[u8], may_be_list: bool) -> Result<Option<(Reply, usize)>, InvalidReply> {
    let window = &input[..input.len().min(LONGEST_LINE)];
    let Some(end) = window.windows(2).position(|two| two == b"\r\n") else {
        return match input.len() < LONGEST_LINE {
            true => Ok(None),
            false => Err(InvalidReply),
        };
    };
    let Some((kind, line)) = input[..end].split_first() else {
        return Err(InvalidReply);
    };
    let begin = end + 2;
    let reply = match kind {
        b'+' => Reply::Text(line.to_vec()),
        b'-' => Reply::Error(String::from_utf8_lossy(line).into_owned()),
        b':' => Reply::Number(number(line)?),
        b'$' => return text(input, begin, number(line)?),
        b'*' if may_be_list => return list(input, begin, number(line)?),
        _ => return Err(InvalidReply),
    };
    Ok(Some((reply, begin)))
}

fn text(input: &[u8], begin: usize, length: i64) -> Result<Option<(Reply, usize)>, InvalidReply> {
    if length == -1 {
        return Ok(Some((Reply::Nothing, begin)));
    }
    let length = usize::try_from(length).map_err(|_| InvalidReply)?;
    if length > LONGEST_TEXT {
        return Err(InvalidReply);
    }
    let end = begin + length;
    match input.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some((Reply::Text(input[begin..end].to_vec()), end + 2))),
        Some(_) => Err(InvalidReply),
    }
}

fn list(input: &[u8], begin: usize, count: i64) -> Result<Option<(Reply, usize)>, InvalidReply> {
    if count == -1 {
        return Ok(Some((Reply::Nothing, begin)));
    }
    let count = usize::try_from(count).map_err(|_| InvalidReply)?;
    if count > MOST_ELEMENTS {
        return Err(InvalidReply);
    }
    let mut at = begin;
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((element, length)) = read(&input[at..], false)? else {
            return Ok(None);
        };
        elements.push(element);
        at += length;
    }
    Ok(Some((Reply::List(elements), at)))
}

fn number(text: &[u8]) -> Result<i64, InvalidReply> {
    let text = std::str::from_utf8(text).map_err(|_| InvalidReply)?;
    text.parse().map_err(|_| InvalidReply)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn replies_are_read_as_far_as_they_are_there() {
        let list = Reply::List(vec![Reply::Number(1), Reply::Text(b"a\r\nb".to_vec())]);
        for (text, expected) in [
            ("+OK\r\n", Reply::Text(b"OK".to_vec())),
            ("-NOSCRIPT no\r\n", Reply::Error("NOSCRIPT no".to_owned())),
            (":-7\r\n", Reply::Number(-7)),
            ("$0\r\n\r\n", Reply::Text(Vec::new())),
            ("$-1\r\n", Reply::Nothing),
            ("*-1\r\n", Reply::Nothing),
            ("*2\r\n:1\r\n$4\r\na\r\nb\r\n", list),
        ] {
            let whole = [text.as_bytes(), b":9\r\n"].concat();
            assert_eq!(
                read_reply(&whole),
                Ok(Some((expected, text.len()))),
                "{text:?}"
            );
            for length in 0..text.len() {
                assert_eq!(read_reply(&whole[..length]), Ok(None), "{text:?} {length}");
            }
        }
    }

    #[test]
    fn replies_that_are_none_or_too_long_are_errors() {
        let long = format!("+{}", "x".repeat(LONGEST_LINE));
        for text in [
            "\r\n",
            "HTTP/1.1 400\r\n",
            ":x\r\n",
            "$-2\r\n",
            "$1025\r\n",
            "$9223372036854775807\r\n",
            "$99999999999999999999\r\n",
            "$1\r\nabc",
            "*9\r\n",
            "*9223372036854775807\r\n",
            "*1\r\n*0\r\n",
            &*long,
        ] {
            assert_eq!(read_reply(text.as_bytes()), Err(InvalidReply), "{text:?}");
        }
    }

    #[test]
    fn a_command_has_its_arguments() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"GET", b"a b"]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\na b\r\n");
    }

    proptest! {
        #[test]
        fn what_is_read_is_within_the_input(input in prop::collection::vec(any::<u8>(), 0..200)) {
            match read_reply(&input) {
                Ok(Some((_, length))) => prop_assert!(length <= input.len()),
                Ok(None) => prop_assert!(input.len() <= LONGEST_PART),
                Err(InvalidReply) => {}
            }
        }
    }
}
