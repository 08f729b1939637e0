//! Tests of sixteen bytes at once.
//!
//! Results are bit masks: the lowest bit belongs to the first byte, and the bits beyond the last
//! byte are set.

#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(not(target_arch = "x86_64"))]
use self::plain as by;
#[cfg(target_arch = "x86_64")]
use self::sse2 as by;

/// The bytes of one test.
pub(super) type Block = [u8; SIZE as usize];

/// Number of bytes in a block.
pub(super) const SIZE: u32 = 16;

/// Number of bytes before the first that is neither a letter nor `-`.
#[inline(always)]
pub(super) fn letters(block: &Block) -> u32 {
    by::no_letters(block).trailing_zeros()
}

/// Number of bytes before the first that is not a letter, a digit, `-`, `.` or `/`, or that is
/// `except`.
#[inline(always)]
pub(super) fn words(block: &Block, except: u8) -> u32 {
    by::no_words(block, except).trailing_zeros()
}

/// Number of bytes before the first control character, including tab. The first `skipped` bytes are
/// not tested.
#[inline(always)]
pub(super) fn text(block: &Block, skipped: u32) -> u32 {
    // A larger shift would overflow.
    let controls = by::controls(block) >> skipped.min(SIZE);
    skipped + controls.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_seen_at_every_place() {
        for at in 0..SIZE {
            for byte in 0..=255_u8 {
                let mut block = [b'a'; SIZE as usize];
                block[at as usize] = byte;
                let end = |belongs: bool| if belongs { SIZE } else { at };
                let is_letter = byte.is_ascii_alphabetic() || byte == b'-';
                assert_eq!(letters(&block), end(is_letter), "{byte:#04x}");
                let is_word = byte.is_ascii_alphanumeric() || b"-./".contains(&byte);
                assert_eq!(words(&block, b'.'), end(is_word && byte != b'.'));
                assert_eq!(words(&block, 0), end(is_word), "{byte:#04x}");
                let is_text = byte >= 0x20 && byte != 0x7f;
                assert_eq!(text(&block, 0), end(is_text), "{byte:#04x}");
                assert_eq!(text(&block, at), end(is_text));
                assert_eq!(text(&block, at + 1), SIZE);
            }
        }
    }

    #[test]
    fn all_ways_say_the_same() {
        for byte in 0..=255_u8 {
            let block = std::array::from_fn(|at| byte.wrapping_add(at as u8 * 17));
            assert_eq!(by::no_letters(&block), plain::no_letters(&block));
            assert_eq!(by::no_words(&block, b'/'), plain::no_words(&block, b'/'));
            assert_eq!(by::controls(&block), plain::controls(&block));
        }
    }
}
