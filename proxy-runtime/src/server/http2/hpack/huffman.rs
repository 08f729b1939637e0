//! The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B).

/// The lengths of the codes of all bytes, in bits. The code is canonical, so the lengths determine
/// the codes.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The length of the longest code, which is also that of the end mark, whose bits are all ones.
const LONGEST: usize = 30;

/// Codes up to this length have a lookup table.
const SHORT: u32 = 8;

struct Codes {
    /// The bytes in the order of their codes.
    sorted: [u8; 256],
    /// The first longer code for each length, in `LONGEST` bits.
    ends: [u32; LONGEST + 1],
    /// Number of bytes with shorter codes, less the first code of the length, for each length.
    places: [i64; LONGEST + 1],
    /// Byte and code length for the next bits; 0 for a longer code.
    short: [(u8, u8); 1 << SHORT],
}

static CODES: Codes = Codes::new();

impl Codes {
    const fn new() -> Self {
        let mut codes = Self {
            sorted: [0; 256],
            ends: [0; LONGEST + 1],
            places: [0; LONGEST + 1],
            short: [(0, 0); 1 << SHORT],
        };
        let mut next = 0_u32;
        let mut count = 0;
        let mut length = 1;
        while length <= LONGEST {
            // Codes of one length are consecutive, so a difference leads from the code to its
            // place.
            next <<= 1;
            codes.places[length] = count as i64 - next as i64;
            let mut byte = 0;
            while byte < 256 {
                if LENGTHS[byte] as usize == length {
                    codes.sorted[count] = byte as u8;
                    if length <= SHORT as usize {
                        let shift = SHORT as usize - length;
                        let mut tail = 0;
                        // Every continuation of a short code leads to its byte.
                        while tail < 1 << shift {
                            codes.short[((next as usize) << shift) + tail] =
                                (byte as u8, length as u8);
                            tail += 1;
                        }
                    }
                    next += 1;
                    count += 1;
                }
                byte += 1;
            }
            codes.ends[length] = next << (LONGEST - length);
            length += 1;
        }
        codes
    }

    /// The byte of the next bits, and the length of its code; `None` at the end mark.
    #[inline]
    fn find(&self, bits: u32) -> Option<(u8, u32)> {
        let (byte, length) = self.short[(bits >> (LONGEST as u32 - SHORT)) as usize];
        match length {
            0 => self.find_long(bits),
            length => Some((byte, u32::from(length))),
        }
    }

    fn find_long(&self, bits: u32) -> Option<(u8, u32)> {
        let length = (SHORT as usize + 1..=LONGEST).find(|&length| bits < self.ends[length])?;
        let place = i64::from(bits >> (LONGEST - length)) + self.places[length];
        Some((self.sorted[place as usize], length as u32))
    }
}

/// Appends the decoded bytes. `None` if the encoding is invalid (RFC 7541 section 5.2).
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = coded.iter();
    // The next bits, from the highest one.
    let mut bits = 0_u64;
    let mut have = 0_u32;
    loop {
        while have <= 48 {
            let Some(&byte) = rest.next() else { break };
            bits |= u64::from(byte) << (56 - have);
            have += 8;
        }
        let padded = bits | (u64::MAX >> have);
        match CODES.find((padded >> (64 - LONGEST)) as u32) {
            Some((byte, length)) if length <= have => {
                out.push(byte);
                bits <<= length;
                have -= length;
            }
            // Padding is the beginning of the end mark, and shorter than a byte.
            _ => return (have < 8 && padded == u64::MAX).then_some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Option<String> {
        let mut out = Vec::new();
        decode(coded, &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    /// Examples of RFC 7541 appendix C.4 and C.6.
    #[test]
    fn examples_of_the_rfc() {
        for (coded, text) in [
            (
                &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..],
                "www.example.com",
            ),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
            (b"\x64\x02", "302"),
            (
                b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
                "https://www.example.com",
            ),
            (b"", ""),
        ] {
            assert_eq!(decoded(coded).as_deref(), Some(text));
        }
    }

    #[test]
    fn all_bytes_come_back() {
        let mut bits = String::new();
        for (byte, &length) in LENGTHS.iter().enumerate() {
            let length = usize::from(length);
            let place = CODES
                .sorted
                .iter()
                .position(|&sorted| usize::from(sorted) == byte);
            let code = place.unwrap() as i64 - CODES.places[length];
            bits.push_str(&format!("{code:0length$b}"));
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        let coded = bits.as_bytes().chunks(8);
        let coded: Vec<u8> = coded
            .map(|bits| u8::from_str_radix(str::from_utf8(bits).unwrap(), 2).unwrap())
            .collect();
        let mut out = Vec::new();
        decode(&coded, &mut out).unwrap();
        assert_eq!(out, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn wrong_padding_and_the_mark_of_the_end_are_errors() {
        for coded in [
            // A whole byte of padding, the end mark, padding of zeros, half a code.
            &b"\x64\x02\xff"[..],
            b"\xff\xff\xff\xff",
            b"\xa8\xeb\x10\x64\x9c\xb0",
            b"\xff\xfe",
            b"\x00",
        ] {
            assert_eq!(decoded(coded), None, "{coded:x?}");
        }
    }
}
