//! Encoding of MessagePack in the forms that every agent reads.
//!
//! Agents up to 0.10.1 close the connection when a string comes as binary, and tags may contain bytes that
//! are not UTF-8, which serde cannot write as a string. So requests are encoded by hand; there are few.

/// Writes values at the end of a buffer. A map is its length and then, by the caller, its keys and values in turn.
pub(crate) struct Encoder<'a>(&'a mut Vec<u8>);

impl<'a> Encoder<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    /// Writes the beginning of a map with this many entries.
    pub(crate) fn map(&mut self, entries: usize) -> &mut Self {
        self.head(entries, Some((0x80, 15)), [None, Some(0xde), Some(0xdf)])
    }

    /// Writes the beginning of an array with this many elements.
    pub(crate) fn array(&mut self, elements: usize) -> &mut Self {
        self.head(elements, Some((0x90, 15)), [None, Some(0xdc), Some(0xdd)])
    }

    /// A string of any bytes.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        let forms = [Some(0xd9), Some(0xda), Some(0xdb)];
        self.head(text.len(), Some((0xa0, 31)), forms);
        self.0.extend_from_slice(text);
        self
    }

    /// Binary.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(bytes.len(), None, [Some(0xc4), Some(0xc5), Some(0xc6)]);
        self.0.extend_from_slice(bytes);
        self
    }

    /// An unsigned integer, as short as it can be.
    pub(crate) fn uint(&mut self, value: u64) -> &mut Self {
        if let Ok(value) = u8::try_from(value) {
            if value > 0x7f {
                self.0.push(0xcc);
            }
            self.0.push(value);
        } else if let Ok(value) = u16::try_from(value) {
            self.marked(0xcd, &value.to_be_bytes());
        } else if let Ok(value) = u32::try_from(value) {
            self.marked(0xce, &value.to_be_bytes());
        } else {
            self.marked(0xcf, &value.to_be_bytes());
        }
        self
    }

    pub(crate) fn boolean(&mut self, value: bool) -> &mut Self {
        self.0.push(if value { 0xc3 } else { 0xc2 });
        self
    }

    /// Writes a marker that contains the length, or is followed by a length of 1, 2 or 4 bytes. It is the
    /// shortest of those that the type has.
    fn head(
        &mut self,
        length: usize,
        fixed: Option<(u8, u8)>,
        [one, two, four]: [Option<u8>; 3],
    ) -> &mut Self {
        if let (Ok(short), Some((base, most))) = (u8::try_from(length), fixed)
            && short <= most
        {
            self.0.push(base | short);
        } else if let (Ok(length), Some(marker)) = (u8::try_from(length), one) {
            self.marked(marker, &[length]);
        } else if let (Ok(length), Some(marker)) = (u16::try_from(length), two) {
            self.marked(marker, &length.to_be_bytes());
        } else if let Some(marker) = four {
            // Requests are bounded far below this; see `MAX_REQUEST` of the client.
            let length = u32::try_from(length).expect("nothing of 4 GiB is written");
            self.marked(marker, &length.to_be_bytes());
        }
        self
    }

    fn marked(&mut self, marker: u8, rest: &[u8]) {
        self.0.push(marker);
        self.0.extend_from_slice(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Encoder::new(&mut out));
        out
    }

    #[test]
    fn lengths_and_integers_take_the_shortest_form() {
        for length in [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(length);
            let ours = encoded(|out| _ = out.text(&text));
            assert_eq!(ours, rmp_serde::to_vec(&text).unwrap(), "{length}");
            let bytes = serde_bytes::ByteBuf::from(text);
            let ours = encoded(|out| _ = out.bytes(&bytes));
            assert_eq!(ours, rmp_serde::to_vec(&bytes).unwrap(), "{length}");
            let array = vec![1_u8; length];
            let ours = encoded(|out| {
                out.array(length);
                array.iter().for_each(|one| _ = out.uint((*one).into()));
            });
            assert_eq!(ours, rmp_serde::to_vec(&array).unwrap(), "{length}");
            let map: std::collections::BTreeMap<usize, bool> =
                (0..length).map(|key| (key, key % 2 == 0)).collect();
            let ours = encoded(|out| {
                out.map(length);
                for (key, value) in &map {
                    out.uint(*key as u64).boolean(*value);
                }
            });
            assert_eq!(ours, rmp_serde::to_vec(&map).unwrap(), "{length}");
        }
        for power in 0..64 {
            for value in [1_u64 << power, (1 << power) - 1] {
                let ours = encoded(|out| _ = out.uint(value));
                assert_eq!(ours, rmp_serde::to_vec(&value).unwrap(), "{value}");
            }
        }
        assert_eq!(
            encoded(|out| _ = out.uint(u64::MAX)),
            rmp_serde::to_vec(&u64::MAX).unwrap()
        );
    }
}
