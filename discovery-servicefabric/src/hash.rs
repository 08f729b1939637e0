//! A hash that is the same in every process.

use std::hash::Hasher;

use fnv::FnvHasher;

/// The 64-bit FNV-1a of the parts, one after the other.
pub(crate) fn fnv1a(parts: &[&str]) -> u64 {
    let mut hasher = FnvHasher::default();
    for part in parts {
        hasher.write(part.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_one_of_the_reference() {
        assert_eq!(super::fnv1a(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(super::fnv1a(&["a"]), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(super::fnv1a(&["foo", "bar"]), 0x8594_4171_f739_67e8);
    }
}
