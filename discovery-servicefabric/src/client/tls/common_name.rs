//! The common name of a certificate's subject, which old clusters go by.

/// `id-at-commonName`, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
const TELETEX: u8 = 0x14;
const BMP: u8 = 0x1e;

/// Returns the common names in the content of a subject: `RDNSequence` of RFC 5280, section 4.1.2.4,
/// without its own tag. Malformed content ends the list.
pub(super) fn common_names(subject: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut subject = Der(subject);
    while let Some(relative) = subject.take(SET) {
        let mut relative = Der(relative);
        while let Some(attribute) = relative.take(SEQUENCE) {
            let mut attribute = Der(attribute);
            if attribute.take(OBJECT_ID) == Some(COMMON_NAME) {
                names.extend(attribute.text());
            }
        }
    }
    names
}

/// The unread rest of a DER value.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Returns the content of the next element, if it has this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content, rest) = self.next()?;
        self.0 = rest;
        (found == tag).then_some(content)
    }

    fn text(&mut self) -> Option<String> {
        let (tag, content, _) = self.next()?;
        match tag {
            UTF8 | PRINTABLE | IA5 => String::from_utf8(content.to_vec()).ok(),
            // In practice Latin-1; names of hosts are ASCII in both.
            TELETEX => Some(content.iter().copied().map(char::from).collect()),
            BMP => {
                let units = content
                    .chunks_exact(2)
                    .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                let text = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
                (content.len() % 2 == 0).then_some(text)
            }
            _ => None,
        }
    }

    /// Tag, content and rest. Lengths have at most two bytes beyond the first: a certificate is short.
    fn next(&self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81 => {
                let (&length, rest) = rest.split_first()?;
                (usize::from(length), rest)
            }
            0x82 => {
                let (length, rest) = rest.split_first_chunk()?;
                (usize::from(u16::from_be_bytes(*length)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        Some((tag, content, rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![tag];
        match u8::try_from(content.len()) {
            Ok(length @ 0..=0x7f) => out.push(length),
            Ok(length) => out.extend([0x81, length]),
            Err(_) => {
                out.push(0x82);
                out.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
            }
        }
        out.extend(content);
        out
    }

    fn relative(oid: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let attribute = [element(OBJECT_ID, oid), element(tag, text)].concat();
        element(SET, &element(SEQUENCE, &attribute))
    }

    #[test]
    fn common_names_are_found_among_other_attributes() {
        let country = relative(&[0x55, 0x04, 0x06], PRINTABLE, b"SE");
        let long = "x".repeat(300);
        let cases: [(u8, &[u8], &[&str]); 7] = [
            (UTF8, "clüster".as_bytes(), &["clüster"]),
            (PRINTABLE, b"cluster.example", &["cluster.example"]),
            (IA5, long.as_bytes(), &[&long]),
            (TELETEX, b"cl\xfcster", &["clüster"]),
            (BMP, b"\0c\0n", &["cn"]),
            (BMP, b"\0c\0", &[]),
            (0x04, b"octets", &[]),
        ];
        for (tag, text, expected) in cases {
            let subject = [country.clone(), relative(COMMON_NAME, tag, text)].concat();
            assert_eq!(common_names(&subject), expected, "{tag:#x}");
        }
        assert_eq!(common_names(&country), <[String; 0]>::default());
    }

    #[test]
    fn what_is_cut_off_ends_the_list() {
        let subject = [
            relative(COMMON_NAME, UTF8, b"first"),
            relative(COMMON_NAME, UTF8, b"second"),
        ]
        .concat();
        assert_eq!(common_names(&subject), ["first", "second"]);
        assert_eq!(common_names(&subject[..subject.len() - 1]), ["first"]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in any::<Vec<u8>>()) {
            common_names(&bytes);
        }
    }
}
