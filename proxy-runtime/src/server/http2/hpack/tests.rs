use h2::Reason;
use proptest::prelude::*;

use super::*;

/// A literal that is not indexed, with name and value in plain text.
fn literal(kind: u8, name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![kind, name.len() as u8];
    block.extend_from_slice(name.as_bytes());
    block.push(value.len() as u8);
    block.extend_from_slice(value.as_bytes());
    block
}

const PLAIN: u8 = 0;
const NEVER: u8 = 0x10;
const INDEXED: u8 = 0x40;

fn read(block: &[u8]) -> Result<HeaderBlock, Reason> {
    Fields::default().read(block, false)
}

fn replaced(block: &[u8]) -> Vec<u8> {
    match read(block) {
        Ok(HeaderBlock::Malformed(Some(block))) => block,
        other => panic!("{other:?}"),
    }
}

/// Three requests of one connection, from RFC 7541 appendix C.4.
#[test]
fn requests_of_the_rfc_are_fine() {
    let mut fields = Fields::default();
    for block in [
        &b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..],
        b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
        b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
    ] {
        assert_eq!(fields.read(block, false), Ok(HeaderBlock::Fine));
    }
    // The custom key, cache-control and the authority.
    let lengths = [62, 63, 64].map(|index| fields.table.get(index).map(|entry| entry.name_length));
    assert_eq!(lengths, [Some(10), Some(13), Some(10)]);
    assert_eq!(fields.table.get(65), None);
}

#[test]
fn what_is_no_hpack_ends_the_connection() {
    for (what, block) in [
        ("number 0", &b"\x80"[..]),
        ("a number that is not given", b"\xbe"),
        ("a number of another table", b"\xff\xff\xff\xff\xff\x01"),
        ("half a number", b"\xff\x80"),
        ("half a string", b"\x00\x05ab"),
        ("no value", b"\x00\x01a"),
        ("wrong padding", b"\x00\x81\x00\x01b"),
        ("too large a table", b"\x3f\xe2\x1f"),
        ("a size behind a field", b"\x82\x20"),
    ] {
        assert_eq!(read(block), Err(Reason::COMPRESSION_ERROR), "{what}");
    }
    assert_eq!(read(b"\x00\x00\x01b"), Err(Reason::PROTOCOL_ERROR));
}

#[test]
fn malformed_fields_are_found() {
    for (name, value) in [
        ("X-Upper", "1"),
        ("x y", "1"),
        ("x\u{e9}", "1"),
        (":foo", "1"),
        (":", "1"),
        ("x-a", "1\n2"),
        ("x-a", "\0"),
        ("x-a", "\x7f"),
        (":method", "G T"),
        (":method", ""),
        (":status", "200"),
    ] {
        for kind in [PLAIN, NEVER, INDEXED] {
            let block = literal(kind, name, value);
            let harmless = replaced(&block);
            assert_eq!(harmless[0], kind);
            assert_eq!(harmless.len(), block.len(), "{name:?}");
            assert_eq!(read(&harmless), Ok(HeaderBlock::Fine), "{name:?}");
        }
    }
    for (name, value) in [
        ("x-a", "\t\u{e9}"),
        ("!#$&'*+-.^_`|~09az", ""),
        (":path", "/?"),
    ] {
        assert_eq!(read(&literal(PLAIN, name, value)), Ok(HeaderBlock::Fine));
    }
    // `h2` accepts them, but the server should not.
    let fragment = literal(PLAIN, ":path", "/a#b");
    assert_eq!(read(&fragment), Ok(HeaderBlock::Malformed(None)));
    assert_eq!(read(b"\x04\x04/a#b"), Ok(HeaderBlock::Malformed(None)));
    assert_eq!(read(b"\x88"), Ok(HeaderBlock::Malformed(None)), ":status");
}

#[test]
fn a_field_is_as_bad_when_its_number_comes() {
    for (name, value) in [("X", "1"), (":path", "/#"), ("x", "\n")] {
        let mut fields = Fields::default();
        let block = literal(INDEXED, name, value);
        let is_malformed = |read| matches!(read, Ok(HeaderBlock::Malformed(_)));
        assert!(is_malformed(fields.read(&block, false)));
        assert!(is_malformed(fields.read(b"\xbe", false)), "{name:?}");
        // The name alone, with another value.
        let named = fields.read(b"\x0f\x2f\x01/", false);
        assert_eq!(is_malformed(named), name == "X", "{name:?}");
    }
}

#[test]
fn pseudo_header_fields_are_not_for_trailers() {
    let mut fields = Fields::default();
    let head = literal(INDEXED, ":path", "/a");
    assert_eq!(fields.read(&head, false), Ok(HeaderBlock::Fine));
    for block in [
        &b"\xbe"[..],
        b"\x84",
        b"\x04\x02/a",
        &literal(PLAIN, ":path", "/evil"),
    ] {
        assert_eq!(fields.read(block, true), Ok(HeaderBlock::Malformed(None)));
    }
    let sum = literal(PLAIN, "x-sum", "1");
    assert_eq!(fields.read(&sum, true), Ok(HeaderBlock::Fine));
}

/// Fields around a replaced one stay, so that both tables remain in step.
#[test]
fn only_what_is_wrong_is_replaced() {
    let before = literal(INDEXED, "x-a", "1");
    let after = [b"\x82\xbe".to_vec(), literal(NEVER, "x-c", "3")].concat();
    let block = [&before[..], &literal(INDEXED, "X-B", "22"), &after].concat();
    let expected = [&before[..], &literal(INDEXED, "xxx", "xx"), &after].concat();
    assert_eq!(replaced(&block), expected);
    let value = [&before[..], &literal(INDEXED, "x-b", "\r\n"), &after].concat();
    let expected = [&before[..], &literal(INDEXED, "x-b", "xx"), &after].concat();
    assert_eq!(replaced(&value), expected);
}

/// The rules for single fields are at least as strict as those of `http`, which `h2` uses.
#[test]
fn what_is_fine_is_so_for_http() {
    use http::{HeaderName, HeaderValue, Method};
    for byte in 0..=255_u8 {
        let text = [b'a', byte];
        if is_name(&text) {
            assert!(HeaderName::from_lowercase(&text).is_ok(), "{byte}");
        }
        assert_eq!(
            is_value(&text),
            HeaderValue::from_bytes(&text).is_ok(),
            "{byte}"
        );
        assert_eq!(is_token(&text), Method::from_bytes(&text).is_ok(), "{byte}");
    }
}

proptest! {
    /// The replacement of any block has the same table indices.
    #[test]
    fn what_replaces_a_block_keeps_the_numbers(
        blocks in prop::collection::vec(prop::collection::vec(parts(), 0..6), 1..6)
    ) {
        let mut client = Fields::default();
        let mut passed_on = Fields::default();
        for block in blocks {
            let block = block.concat();
            let Ok(read) = client.read(&block, false) else { return Ok(()) };
            let block = match read {
                HeaderBlock::Malformed(Some(other)) => other,
                _ => block,
            };
            let again = passed_on.read(&block, false);
            prop_assert!(!matches!(again, Err(_) | Ok(HeaderBlock::Malformed(Some(_)))), "{again:?}");
            let sizes = |fields: &Fields| -> Vec<_> {
                let entries = (62..).map_while(|index| fields.table.get(index));
                entries.map(|entry| (entry.name_length, entry.value_length)).collect()
            };
            prop_assert_eq!(sizes(&client), sizes(&passed_on));
        }
    }

    #[test]
    fn bytes_without_sense_do_no_harm(block: Vec<u8>, is_trailers: bool) {
        let _ = Fields::default().read(&block, is_trailers);
    }
}

/// Fields in all representations, valid and invalid.
pub(in crate::server::http2) fn parts() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![":path", ":method", ":x", "x-a", "X", "x\n", "cookie"]);
    let value = prop::sample::select(vec!["", "/", "/#", "a b", "\n", "GET"]);
    let kind = prop::sample::select(vec![PLAIN, NEVER, INDEXED]);
    let named =
        (kind, name, value.clone()).prop_map(|(kind, name, value)| literal(kind, name, value));
    let numbered = (0x80_u8..0xc8).prop_map(|index| vec![index]);
    let by_number = (0x41_u8..0x7f, value).prop_map(|(first, value)| {
        let mut field = vec![first, value.len() as u8];
        field.extend_from_slice(value.as_bytes());
        field
    });
    let size = prop::sample::select(vec![&b"\x20"[..], b"\x3f\x45", b"\x3f\xe1\x1f"]);
    prop_oneof![named, numbered, by_number, size.prop_map(<[u8]>::to_vec)]
}
