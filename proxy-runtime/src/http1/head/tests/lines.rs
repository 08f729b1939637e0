//! The optimised parser of field lines against a simple one.

use proptest::prelude::*;

use super::super::{Section, read_fields};
use super::*;

/// Name and value of each field, and the end of the section, if it is complete and valid by RFC
/// 9112 section 5.
type Read = Option<(Vec<(Vec<u8>, Vec<u8>)>, usize)>;

/// The simple parser, byte by byte.
fn read_plainly(bytes: &[u8]) -> Read {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_text = |byte: &u8| *byte == b'\t' || (*byte >= 0x20 && *byte != 0x7f);
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let mut fields = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(behind) = rest.strip_prefix(b"\r\n") {
            return Some((fields, bytes.len() - behind.len()));
        }
        let name = rest.iter().take_while(|byte| is_token(byte)).count();
        let line = rest[name..].strip_prefix(b":").filter(|_| name > 0)?;
        let text = line.iter().take_while(|byte| is_text(byte)).count();
        let next = line[text..].strip_prefix(b"\r\n")?;
        let text = &line[..text];
        let before = text.iter().take_while(is_blank).count();
        let behind = text[before..].iter().rev().take_while(is_blank).count();
        let value = &text[before..text.len() - behind];
        fields.push((rest[..name].to_vec(), value.to_vec()));
        rest = next;
    }
}

fn read(bytes: &[u8]) -> Read {
    let mut table = HeadTable::new();
    let end = read_fields(bytes, usize::MAX, Section::Response, &mut table).ok()?;
    let field = |field: &crate::http1::Field| {
        let part = |span: crate::http1::Span| span.get(bytes).to_vec();
        assert_eq!(
            field.class(),
            crate::http1::classify(field.name().get(bytes))
        );
        (part(field.name()), part(field.value()))
    };
    Some((table.fields().iter().map(field).collect(), end))
}

/// Almost valid lines.
fn section() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(b"aZ-".to_vec());
    let token = prop::sample::select(b"aQ-9_.~".to_vec());
    let name = prop_oneof![
        4 => prop::collection::vec(letter, 0..26),
        1 => prop::collection::vec(token, 0..26),
    ];
    let blanks = prop::sample::select(vec![&b" "[..], b" ", b"", b"  ", b"\t", b" \t "]);
    let byte =
        prop_oneof![6 => 0x21..0x7f_u8, 1 => Just(b' '), 1 => Just(b'\t'), 1 => 0x80..=0xff_u8];
    let value = prop::collection::vec(byte, 0..40);
    let end = prop::sample::select(vec![&b""[..], b"", b"", b" ", b"\t", b" \t"]);
    let line = (name, blanks, value, end).prop_map(|(name, blanks, value, end)| {
        [&name[..], b":", blanks, &value[..], end, b"\r\n"].concat()
    });
    prop::collection::vec(line, 0..6).prop_map(|lines| [&lines.concat()[..], b"\r\n"].concat())
}

proptest! {
    #[test]
    fn lines_mean_what_the_grammar_says(
        mut bytes in section(),
        behind in prop::collection::vec(any::<u8>(), 0..12),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        bytes.extend_from_slice(&behind);
        if let Some((at, byte)) = change {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(read(&bytes), read_plainly(&bytes), "{}", bytes.escape_ascii());
    }
}

#[test]
fn every_byte_at_every_place_of_a_line() {
    let section = b"Name-that-is-long: value that is longer\r\nA: b\r\nX-9: \xff\r\n\r\n";
    for at in 0..section.len() {
        for byte in 0..=255 {
            let mut bytes = *section;
            bytes[at] = byte;
            assert_eq!(
                read(&bytes),
                read_plainly(&bytes),
                "{}",
                bytes.escape_ascii()
            );
        }
    }
}
