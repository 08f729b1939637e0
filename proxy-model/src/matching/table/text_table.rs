//! A hash table from short texts, ignoring case, to numbers.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;

use crate::matching::text::{self, equals_folded};

/// A map from a scope and a text to a number, without allocation and with one or two memory accesses.
///
/// The hash depends on a random seed, so that those who can add routes cannot choose texts that collide.
/// The text of a request cannot make a lookup longer than the texts in the table do.
#[derive(Clone)]
pub(super) struct TextTable {
    seed: u64,
    /// A power of two of them, at most half of them used.
    slots: Box<[Option<Slot>]>,
    texts: Box<str>,
}

#[derive(Clone, Copy)]
struct Slot {
    scope: u32,
    value: u32,
    /// Bits of the hash, to distinguish most texts without comparing them.
    tag: u32,
    start: usize,
    length: NonZeroUsize,
}

impl TextTable {
    /// Builds the table from scopes, folded texts that are not empty, and numbers. No scope and text come twice.
    pub(super) fn build<'a>(items: impl ExactSizeIterator<Item = (u32, &'a str, u32)>) -> Self {
        let capacity = (2 * items.len()).next_power_of_two();
        let mut table = Self {
            seed: RandomState::new().hash_one(capacity),
            slots: vec![None; capacity].into(),
            texts: Box::default(),
        };
        let mut texts = String::new();
        for (scope, text, value) in items {
            let Some(length) = NonZeroUsize::new(text.len()) else {
                continue;
            };
            let (mut at, tag) = table.place(scope, text.as_bytes());
            while table.slots[at].is_some() {
                at = table.after(at);
            }
            table.slots[at] = Some(Slot {
                scope,
                value,
                tag,
                start: texts.len(),
                length,
            });
            texts.push_str(text);
        }
        table.texts = texts.into();
        table
    }

    /// Returns true if the table is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The number that `text`, in any case, has in `scope`. It is UTF-8, or it is not found.
    pub(super) fn get(&self, scope: u32, text: &[u8]) -> Option<u32> {
        let (mut at, tag) = self.place(scope, text);
        while let Some(slot) = &self.slots[at] {
            if slot.tag == tag && slot.scope == scope {
                let known = &self.texts[slot.start..slot.start + slot.length.get()];
                if is_same(text, known) {
                    return Some(slot.value);
                }
            }
            at = self.after(at);
        }
        None
    }

    /// The first slot to look into, and the tag to look for.
    #[inline]
    fn place(&self, scope: u32, text: &[u8]) -> (usize, u32) {
        let seed = self.seed ^ u64::from(scope).rotate_left(32);
        let mut hash = mixed(seed ^ text.len() as u64);
        let mut all = 0;
        let (words, last) = text.as_chunks();
        for word in words {
            let word = u64::from_le_bytes(*word);
            all |= word;
            hash = mixed(hash ^ lower_case(word));
        }
        if !last.is_empty() {
            let word = last_word(last);
            all |= word;
            hash = mixed(hash ^ lower_case(word));
        }
        if all & TOP_BITS != 0 {
            hash = hash_of_folded(seed, text);
        }
        (hash as usize & (self.slots.len() - 1), (hash >> 32) as u32)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

/// The hash of a text that is not ASCII: such texts that differ in case only may differ in length.
#[cold]
fn hash_of_folded(seed: u64, text: &[u8]) -> u64 {
    let text = str::from_utf8(text).unwrap_or_default();
    text.chars().fold(seed, |hash, c| {
        mixed(hash ^ u64::from(u32::from(text::fold(c))))
    })
}

/// [`equals_folded`], which for ASCII compares eight characters at once.
#[inline]
fn is_same(text: &[u8], folded: &str) -> bool {
    let (words, last) = text.as_chunks();
    let (folded_words, folded_last) = folded.as_bytes().as_chunks();
    let is_same_word = |word: u64, folded: u64| lower_case(word) == folded;
    let mut pairs = words.iter().zip(folded_words);
    (text.len() == folded.len()
        && pairs.all(|(a, b)| is_same_word(u64::from_le_bytes(*a), u64::from_le_bytes(*b)))
        && is_same_word(last_word(last), last_word(folded_last)))
        || (!folded.is_ascii()
            && str::from_utf8(text).is_ok_and(|text| equals_folded(text, folded)))
}

/// Spreads every bit over all others: the halves of the product with a number whose bits are irregular.
fn mixed(bits: u64) -> u64 {
    let product = u128::from(bits ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    (product as u64) ^ (product >> 64) as u64
}

/// Packs fewer than eight bytes into one word, each at least once. Their number determines their positions.
#[inline]
fn last_word(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    match bytes {
        [a, b, c] => u64::from_le_bytes([*a, *b, *c, 0, 0, 0, 0, 0]),
        [a, b] => u64::from_le_bytes([*a, *b, 0, 0, 0, 0, 0, 0]),
        [a] => u64::from(*a),
        _ => 0,
    }
}

/// One in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The bits that no ASCII character has.
const TOP_BITS: u64 = ONES << 7;

/// Turns each of eight ASCII characters into lower case.
fn lower_case(chars: u64) -> u64 {
    // The top bit of each byte shows if the character is at least `A`, or beyond `Z`. Bytes outside ASCII
    // overflow, but keep their top bit.
    let from_a = chars.wrapping_add(ONES * (0x80 - b'A' as u64));
    let beyond_z = chars.wrapping_add(ONES * (0x7f - b'Z' as u64));
    let is_upper = (from_a ^ beyond_z) & TOP_BITS;
    // The top bit, two to the right, is the bit that makes a letter lower case.
    chars | is_upper >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_characters_become_lower_case_at_once() {
        for c in 0..128_u8 {
            let chars = [c, b'@', c, b'[', c, b'Z', b'A', c];
            let lower = lower_case(u64::from_le_bytes(chars)).to_le_bytes();
            assert_eq!(lower, chars.map(|c| c.to_ascii_lowercase()));
        }
    }

    #[test]
    fn texts_are_found_in_their_scope_in_any_case() {
        let texts: Vec<(u32, String, u32)> = (0..1000)
            .map(|n| (n % 3, format!("some-segment-{}", n / 3), n))
            .chain([(0, "\u{c4}PFEL".into(), 5000), (0, "\u{23a}".into(), 5001)])
            .map(|(scope, text, value)| (scope, text::folded(&text).into(), value))
            .collect();
        let table = TextTable::build(
            texts
                .iter()
                .map(|(scope, text, value)| (*scope, text.as_str(), *value)),
        );
        for (scope, text, value) in &texts {
            assert_eq!(table.get(*scope, text.as_bytes()), Some(*value));
            assert_eq!(
                table.get(*scope, text.to_uppercase().as_bytes()),
                Some(*value)
            );
            assert_eq!(table.get(*scope + 3, text.as_bytes()), None);
        }
        assert_eq!(table.get(0, "\u{e4}pfel".as_bytes()), Some(5000));
        assert_eq!(
            table.get(0, "\u{2c65}".as_bytes()),
            Some(5001),
            "longer in lower case"
        );
        for absent in ["", "some-segment-", "some-segment-1000", "apfel"] {
            assert_eq!(table.get(0, absent.as_bytes()), None, "{absent}");
        }
    }

    #[test]
    fn an_empty_table_finds_nothing() {
        let table = TextTable::build(
            std::iter::empty::<(u32, &str, u32)>()
                .collect::<Vec<_>>()
                .into_iter(),
        );
        assert_eq!(table.get(0, b"a"), None);
        assert!(table.is_empty());
        assert!(!TextTable::build([(0, "a", 0)].into_iter()).is_empty());
    }
}
