//! The portable implementation, byte by byte, which the compiler may vectorise.

use super::{Block, SIZE};

/// Mask of bytes that are neither letters nor `-`.
#[inline]
pub(super) fn no_letters(block: &Block) -> u32 {
    mask(block, |byte| !(byte.is_ascii_alphabetic() || byte == b'-'))
}

/// Mask of bytes that are not letters, digits, `-`, `.` or `/`, or that are `except`.
#[inline]
pub(super) fn no_words(block: &Block, except: u8) -> u32 {
    mask(block, |byte| {
        !(byte.is_ascii_alphabetic() || matches!(byte, b'-'..=b'9')) || byte == except
    })
}

/// Mask of control characters, including tab.
#[inline]
pub(super) fn controls(block: &Block) -> u32 {
    mask(block, |byte| matches!(byte, ..0x20 | 0x7f))
}

#[inline]
fn mask(block: &Block, is: impl Fn(u8) -> bool) -> u32 {
    let bytes = (0..).zip(block);
    bytes.fold(u32::MAX << SIZE, |mask, (at, byte)| {
        mask | u32::from(is(*byte)) << at
    })
}
