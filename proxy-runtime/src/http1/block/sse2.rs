//! The implementation for SSE2, which every `x86_64` processor has.

use safe_arch::{
    add_i8_m128i, bitor_m128i, cmp_eq_mask_i8_m128i, load_unaligned_m128i, m128i, min_u8_m128i,
    move_mask_i8_m128i, set_splat_i8_m128i,
};

use super::{Block, SIZE};

/// Mask of bytes that are neither letters nor `-`.
#[inline(always)]
pub(super) fn no_letters(block: &Block) -> u32 {
    let bytes = load_unaligned_m128i(block);
    // Maps letters of both cases to 0 to 25, and no other byte.
    let order = add_i8_m128i(bitor_m128i(bytes, each(0x20)), each(b'a'.wrapping_neg()));
    let is_letter = is_at_most(order, 25);
    let is_hyphen = cmp_eq_mask_i8_m128i(bytes, each(b'-'));
    !mask(bitor_m128i(is_letter, is_hyphen))
}

/// Mask of bytes that are not letters, digits, `-`, `.` or `/`, or that are `except`.
#[inline(always)]
pub(super) fn no_words(block: &Block, except: u8) -> u32 {
    let bytes = load_unaligned_m128i(block);
    let order = add_i8_m128i(bitor_m128i(bytes, each(0x20)), each(b'a'.wrapping_neg()));
    let is_letter = is_at_most(order, 25);
    // In ASCII the three precede the digits.
    let order = add_i8_m128i(bytes, each(b'-'.wrapping_neg()));
    let is_other = is_at_most(order, b'9' - b'-');
    let is_except = cmp_eq_mask_i8_m128i(bytes, each(except));
    !mask(bitor_m128i(is_letter, is_other)) | mask(is_except)
}

/// Mask of control characters, including tab.
#[inline(always)]
pub(super) fn controls(block: &Block) -> u32 {
    let bytes = load_unaligned_m128i(block);
    let is_delete = cmp_eq_mask_i8_m128i(bytes, each(0x7f));
    mask(bitor_m128i(is_at_most(bytes, 0x1f), is_delete)) | u32::MAX << SIZE
}

#[inline(always)]
fn is_at_most(bytes: m128i, most: u8) -> m128i {
    // SSE2 compares signed bytes only.
    cmp_eq_mask_i8_m128i(min_u8_m128i(bytes, each(most)), bytes)
}

#[inline(always)]
fn each(byte: u8) -> m128i {
    set_splat_i8_m128i(byte.cast_signed())
}

#[inline(always)]
fn mask(bytes: m128i) -> u32 {
    move_mask_i8_m128i(bytes).cast_unsigned()
}
