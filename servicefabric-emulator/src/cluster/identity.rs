//! Ids in the form of a real cluster's: hashes for entities with names, the same in every run; times for
//! instances.

use std::fmt;
use std::str::FromStr;

use super::error::FabricError;

/// The id of a partition: a GUID, written in lower case with dashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(u128);

impl PartitionId {
    /// Derives the id of the `index`-th partition of the service that was created as the `generation`-th of
    /// its name.
    pub(crate) fn derive(service: &str, generation: u64, index: usize) -> Self {
        let seed = format!("partition\0{service}\0{generation}\0{index}");
        let high = u128::from(hash(&seed, 0));
        let low = u128::from(hash(&seed, 1));
        let raw = (high << 64) | low;
        // The version bits of a GUID of version 8 (RFC 9562), whose content its creator defines.
        let version = (raw & !(0xF << 76)) | (0x8 << 76);
        Self((version & !(0x3 << 62)) | (0x2 << 62))
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let (a, b, c, d, e) = (
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        );
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PartitionId {
    type Err = FabricError;

    /// Parses a GUID with dashes.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for anything else.
    fn from_str(text: &str) -> Result<Self, FabricError> {
        let bytes = text.as_bytes();
        let shape = bytes.len() == 36
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        let value = shape
            .then(|| u128::from_str_radix(&text.replace('-', ""), 16).ok())
            .flatten();
        value.map(Self).ok_or_else(|| {
            let shown: String = text.chars().take(60).collect();
            FabricError::invalid_argument(format!("'{shown}' is not the id of a partition"))
        })
    }
}

/// A replica of a stateful service, or an instance of a stateless one, in the whole cluster. The replica's
/// number alone is unique in its partition only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaRef {
    /// The partition.
    pub partition: PartitionId,
    /// The id of the replica or instance.
    pub replica: i64,
}

impl fmt::Display for ReplicaRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.partition, self.replica)
    }
}

/// Returns an id that grows with `sequence`: like real ones, a number of 100 ns steps, from `since`. Ten
/// thousand of them take a second, so that a later cluster has none of an earlier one's ids.
pub(crate) fn instance_id(since: i64, sequence: u64) -> i64 {
    let step = i64::try_from(sequence % 1_000_000_000).unwrap_or(0);
    let spread = i64::try_from(hash("instance", sequence) % 700).unwrap_or(0);
    since.saturating_add(step * 1_000 + spread)
}

/// Returns the 128-bit id of a node: 32 hexadecimal digits.
pub(crate) fn node_id(name: &str) -> String {
    format!("{:016x}{:016x}", hash(name, 0x6e), hash(name, 0x6f))
}

/// Returns the 64-bit FNV-1a hash of `text`, mixed with `salt`.
pub(crate) fn hash(text: &str, salt: u64) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes().chain(salt.to_le_bytes()) {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // FNV gives similar texts similar high bits; this is the finalizer of SplitMix64.
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Date;

    #[test]
    fn partition_ids_are_written_as_guids_and_read_back() {
        let id = PartitionId::derive("fabric:/Shop/Web", 1, 0);
        let text = id.to_string();
        assert_eq!(text.len(), 36);
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
        assert_ne!(id, PartitionId::derive("fabric:/Shop/Web", 1, 1));
        assert_ne!(id, PartitionId::derive("fabric:/Shop/Web", 2, 0));
    }

    #[test]
    fn what_is_no_guid_is_rejected() {
        for text in [
            "",
            "1",
            "{00000000-0000-0000-0000-000000000000}",
            "0000000000000000000000000000000000-0",
            "+0000000-0000-0000-0000-000000000000",
        ] {
            assert!(text.parse::<PartitionId>().is_err(), "{text}");
        }
    }

    #[test]
    fn instance_ids_grow_have_eighteen_digits_and_do_not_come_again() {
        let since = |text: &str| Date::parse(text).unwrap().ticks();
        let ids = |since| (0..20_000).map(move |at| instance_id(since, at));
        let first: Vec<i64> = ids(since("2026-01-01T00:00:00Z")).collect();
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(first.iter().all(|id| id.to_string().len() == 18));
        let mut later = ids(since("2026-01-01T00:00:03Z"));
        assert!(later.all(|id| id > first[first.len() - 1]));
    }
}
