//! Comparison of received field names with stored ones.

/// Returns true if `received` equals `name`, which is in lower case, ignoring case.
///
/// Compares eight bytes at a time, and the last eight overlap the ones before: byte by byte, the comparison would
/// take most of the time of filling a map.
#[inline]
pub(super) fn is_named(received: &[u8], name: &[u8]) -> bool {
    if received.len() != name.len() {
        return false;
    }
    // The last word may overlap the one before.
    if let (Some(last), Some(name_last)) = (received.last_chunk(), name.last_chunk()) {
        let (words, _) = received.as_chunks();
        let (name_words, _) = name.as_chunks();
        let mut words = words.iter().zip(name_words);
        return words.all(|(word, name)| is_word(*word, *name)) && is_word(*last, *name_last);
    }
    match (halves(received), halves(name)) {
        (Some(word), Some(name)) => is_word(word, name),
        _ => received.eq_ignore_ascii_case(name),
    }
}

/// Four to eight bytes as eight.
#[inline]
fn halves(bytes: &[u8]) -> Option<[u8; 8]> {
    let (first, last) = (bytes.first_chunk::<4>()?, bytes.last_chunk::<4>()?);
    let (first, last) = (u32::from_ne_bytes(*first), u32::from_ne_bytes(*last));
    Some((u64::from(first) << 32 | u64::from(last)).to_ne_bytes())
}

/// Compares eight bytes, ignoring case. No byte of the name has its highest bit set.
#[inline]
fn is_word(received: [u8; 8], name: [u8; 8]) -> bool {
    const EACH: u64 = u64::MAX / 0xff;
    let (received, name) = (u64::from_ne_bytes(received), u64::from_ne_bytes(name));
    // The highest bit of each byte that is at least `a`, except for those that are behind `z`.
    let from_a = name.wrapping_add(EACH * u64::from(0x80 - b'a'));
    let behind_z = name.wrapping_add(EACH * u64::from(0x7f - b'z'));
    let letters = from_a & !behind_z & (EACH * 0x80);
    // A letter that is small has this bit, and a capital one has not.
    received | (letters >> 2) == name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_the_same_in_any_case(
            name in "[a-z0-9!#$%&'*+.^_`|~-]{0,20}",
            other in "[a-zA-Z0-9!#$%&'*+.^_`|~@\\[{}\u{7f}\u{e9}-]{0,20}",
            place in 0..20_usize,
            byte: u8,
        ) {
            let same = |received: &[u8]| {
                let expected = received.eq_ignore_ascii_case(name.as_bytes());
                assert_eq!(is_named(received, name.as_bytes()), expected, "{received:?} {name}");
            };
            same(name.to_ascii_uppercase().as_bytes());
            same(other.as_bytes());
            let mut nearly = name.to_ascii_uppercase().into_bytes();
            if let Some(place) = nearly.get_mut(place) {
                *place = byte;
            }
            same(&nearly);
        }
    }
}
