//! The text of a file, in the encodings that .NET reads.

use std::borrow::Cow;

/// Returns the text of a file: UTF-8, with or without a byte order mark, or UTF-16 with one, as .NET's
/// `StreamReader` reads them and editors of Windows write them. The error is the reason and what to do.
pub(super) fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            Err("the file is UTF-32; save it as UTF-8".to_owned())
        }
        [0xff, 0xfe, units @ ..] => from_utf16(units, u16::from_le_bytes).map(Cow::Owned),
        [0xfe, 0xff, units @ ..] => from_utf16(units, u16::from_be_bytes).map(Cow::Owned),
        [0, first, ..] | [first, 0, ..] if *first != 0 => {
            Err("the file looks like UTF-16 without a byte order mark; save it as UTF-8".to_owned())
        }
        _ => {
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            let text = std::str::from_utf8(text)
                .map_err(|error| format!("the file is not UTF-8: {error}; save it as UTF-8"))?;
            Ok(Cow::Borrowed(text))
        }
    }
}

fn from_utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> Result<String, String> {
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(
            "the file is UTF-16 with half a character at its end; save it as UTF-8".to_owned(),
        );
    }
    let units = pairs.map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .map_err(|error| format!("the file is not UTF-16: {error}; save it as UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_the_encodings_that_dot_net_reads() {
        let text = "{\"ü\": \"𝄞\"}";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [
            text.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            [b"\xff\xfe", little.as_slice()].concat(),
            [b"\xfe\xff", big.as_slice()].concat(),
        ] {
            assert_eq!(decoded(&bytes).unwrap(), text);
        }
        for (bytes, expected) in [
            (little.as_slice(), "without a byte order mark"),
            (&big, "without a byte order mark"),
            (b"\xff\xfe\0\0{\0\0\0", "UTF-32"),
            (b"\0\0\xfe\xff\0\0\0{", "UTF-32"),
            (b"\xff\xfe{", "half a character"),
            (b"\xff\xfe\0\xd8{\0", "not UTF-16"),
            (b"{\"\xfc\"}", "not UTF-8"),
        ] {
            let reason = decoded(bytes).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
            assert!(reason.contains("save it as UTF-8"), "{reason}");
        }
        assert_eq!(decoded(b"").unwrap(), "");
    }
}
