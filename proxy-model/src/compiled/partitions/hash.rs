//! The conversion of the bytes of a key to a number.

use std::hash::Hasher;

use fnv::FnvHasher;

/// The 64-bit FNV-1a hash of `bytes`, with the offset basis and the prime of its authors.
pub(super) fn fnv1a64(bytes: &[u8]) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// Maps a hash to a number from `low` to `high`: its bits unchanged if the range has all 64-bit numbers,
/// otherwise its remainder, counted from `low`.
pub(super) fn spread(hash: u64, low: i64, high: i64) -> i64 {
    match low.abs_diff(high).checked_add(1) {
        None => hash.cast_signed(),
        // The remainder is at most `high - low`, so the sum is between the two.
        Some(numbers) => low.wrapping_add_unsigned(hash % numbers),
    }
}
