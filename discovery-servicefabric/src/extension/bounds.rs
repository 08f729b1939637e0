//! Limits of XML, checked before it is parsed.
//!
//! The parser builds its tree in time that grows with the product of depth and namespaces, and with the
//! square of the attributes of an element. Both are limited here, in one pass without allocation. XML that
//! is not well-formed passes: the parser reports the place.

/// Maximum length of the text, as in the original.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting. A manifest needs eight.
const MAX_DEPTH: usize = 32;

/// The most attributes of one element. The most that a manifest has is about ten.
const MAX_ATTRIBUTES: usize = 64;

/// The most elements, comments and pieces of text, for the parser.
pub(super) const MAX_NODES: u32 = 100_000;

/// The reason why XML is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OutOfBounds {
    /// Longer than [`MAX_BYTES`].
    #[error("it has more than {MAX_BYTES} bytes")]
    TooLong,
    /// Deeper than [`MAX_DEPTH`].
    #[error("its elements are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// More than [`MAX_ATTRIBUTES`].
    #[error("an element has more than {MAX_ATTRIBUTES} attributes")]
    TooManyAttributes,
    /// A document type definition, which could define entities without end.
    #[error("it has a document type definition, which is not allowed")]
    Definition,
}

/// Checks that parsing `xml` cannot take long.
pub(super) fn check(xml: &str) -> Result<(), OutOfBounds> {
    if xml.len() > MAX_BYTES {
        return Err(OutOfBounds::TooLong);
    }
    let mut depth = 0_usize;
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = after(comment, "-->");
        } else if let Some(data) = rest.strip_prefix("![CDATA[") {
            rest = after(data, "]]>");
        } else if rest.starts_with('!') {
            return Err(OutOfBounds::Definition);
        } else if let Some(instruction) = rest.strip_prefix('?') {
            rest = after(instruction, "?>");
        } else if let Some(end) = rest.strip_prefix('/') {
            depth = depth.saturating_sub(1);
            rest = after(end, ">");
        } else {
            let tag = tag(rest);
            if tag.attributes > MAX_ATTRIBUTES {
                return Err(OutOfBounds::TooManyAttributes);
            }
            depth += usize::from(!tag.is_empty);
            if depth > MAX_DEPTH {
                return Err(OutOfBounds::TooDeep);
            }
            rest = &rest[tag.len..];
        }
    }
    Ok(())
}

/// Returns the text behind the first `end`, or an empty text if there is none.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

struct Tag {
    attributes: usize,
    is_empty: bool,
    len: usize,
}

/// Reads a start tag up to its `>`, ignoring one in quotes.
fn tag(text: &str) -> Tag {
    let (mut attributes, mut quote, mut before) = (0, None, b' ');
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => attributes += 1,
            (None, b'>') => {
                return Tag {
                    attributes,
                    is_empty: before == b'/',
                    len: at + 1,
                };
            }
            (None, _) => {}
        }
        before = byte;
    }
    Tag {
        attributes,
        is_empty: true,
        len: text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_attributes_length_and_definitions_are_bounded() {
        let nested = |depth| "<a x='>'>".repeat(depth) + &"</a>".repeat(depth);
        let with = |attributes| format!("<a{}/>", " b='=='".repeat(attributes));
        let cases = [
            (nested(MAX_DEPTH), Ok(())),
            (nested(MAX_DEPTH + 1), Err(OutOfBounds::TooDeep)),
            ("<a/>".repeat(1000), Ok(())),
            (with(MAX_ATTRIBUTES), Ok(())),
            (
                with(MAX_ATTRIBUTES + 1),
                Err(OutOfBounds::TooManyAttributes),
            ),
            ("<!DOCTYPE a []><a/>".into(), Err(OutOfBounds::Definition)),
            (
                "<a><!-- <!DOCTYPE --><![CDATA[<!DOCTYPE]]><?x <!y ?></a>".into(),
                Ok(()),
            ),
            ("<a".into(), Ok(())),
            ("<!--".into(), Ok(())),
            (" ".repeat(MAX_BYTES + 1), Err(OutOfBounds::TooLong)),
        ];
        for (xml, expected) in cases {
            assert_eq!(check(&xml), expected, "{}", &xml[..xml.len().min(60)]);
        }
    }
}
