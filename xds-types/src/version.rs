use std::fmt;
use std::str::FromStr;

/// The version of a resource or of a set of them: a hash of the content, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(u64);

impl Version {
    /// Returns the version of these parts. Each part counts together with its length.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        // FNV-1a: equal on every machine and in every release, which the standard library's hashers do not promise. Nobody
        // gains from a collision that they would have to provoke in their own configuration.
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let mut hash = OFFSET;
        let mut eat = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
            }
        };
        for part in parts {
            eat(&(part.len() as u64).to_le_bytes());
            eat(part);
        }
        Self(hash)
    }

    /// Returns the version as eight bytes, for the version of a larger whole.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Returns the version of the set with one more resource. The order does not count, and an empty set has the
    /// default version, so that a changed set needs no full computation.
    #[must_use]
    pub fn with(self, name: &str, version: Self) -> Self {
        Self(self.0.wrapping_add(Self::member(name, version)))
    }

    /// Returns the version of the set without a resource that it contains.
    #[must_use]
    pub fn without(self, name: &str, version: Self) -> Self {
        Self(self.0.wrapping_sub(Self::member(name, version)))
    }

    fn member(name: &str, version: Self) -> u64 {
        let mut mixed = Self::of([name.as_bytes(), &version.to_bytes()]).0;
        // FNV's last step spreads little, and sums would meet; the finalizer of SplitMix64 spreads every bit over all.
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A text that is not what [`Version`] prints: another server's version, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version of this control plane has 16 hexadecimal digits")]
pub struct ForeignVersion;

impl FromStr for Version {
    type Err = ForeignVersion;

    fn from_str(text: &str) -> Result<Self, ForeignVersion> {
        if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ForeignVersion);
        }
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| ForeignVersion)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_it_is_written() {
        let version = Version::of([b"a".as_slice(), b"b"]);
        assert_eq!(version.to_string().parse(), Ok(version));
        for foreign in ["", "1", "62c5b429", "+123456789abcdef", "00000000000000000"] {
            assert_eq!(foreign.parse::<Version>(), Err(ForeignVersion), "{foreign}");
        }
    }

    #[test]
    fn parts_count_with_their_borders() {
        let (one, other) = (
            Version::of([b"ab".as_slice(), b"c"]),
            Version::of([b"a".as_slice(), b"bc"]),
        );
        assert_ne!(one, other);
    }

    #[test]
    fn what_is_added_can_be_taken_away() {
        let (one, two) = (
            Version::of([b"1".as_slice()]),
            Version::of([b"2".as_slice()]),
        );
        let both = Version::default().with("a", one).with("b", two);
        assert_eq!(both, Version::default().with("b", two).with("a", one));
        assert_eq!(both.without("a", one), Version::default().with("b", two));
        assert_ne!(both, Version::default().with("a", two).with("b", one));
    }
}
