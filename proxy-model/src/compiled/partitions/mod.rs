//! Clusters that each have a part of a key space.

mod hash;
mod key;
#[cfg(test)]
mod tests;

pub use self::key::PartitionKeySource;
use super::cluster::ClusterIndex;
use crate::config::PartitionHash;
use crate::head::RequestHead;
use crate::id::ClusterId;

/// The partitions of a route: which cluster serves a request is decided by a key that the request carries.
///
/// To find it takes no lock, and allocates only to decode a key that is percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    key: PartitionKeySource,
    hash: PartitionHash,
    /// The partitions, at least one. Either all have ranges, which are in ascending order and do not
    /// overlap, or all have names, which are in ascending order and differ.
    targets: Box<[PartitionTarget]>,
}

/// One partition of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTarget {
    pub(crate) id: ClusterId,
    pub(crate) cluster: Option<ClusterIndex>,
    pub(crate) keys: PartitionKeys,
}

/// The keys that belong to a partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartitionKeys {
    /// Numbers, with both ends.
    Range {
        /// The least.
        low: i64,
        /// The greatest key, at least as great as the least.
        high: i64,
    },
    /// The one key that is equal byte for byte.
    Name(Box<str>),
}

impl std::fmt::Display for PartitionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Range { low, high } if low == high => write!(f, "{low}"),
            Self::Range { low, high } => write!(f, "{low} to {high}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The reason why a request belongs to no partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRejection {
    /// The request has no key, or an empty one.
    #[error("the request has no partition key")]
    Missing,
    /// The request has several keys, which are not the same.
    #[error("the request has several partition keys that differ")]
    Ambiguous,
    /// The partitions have ranges, and the key is not a signed 64-bit number.
    #[error("the partition key is not a whole number of 64 bits")]
    NotANumber,
    /// No partition has the key.
    #[error("no partition has the key")]
    NoPartition,
}

impl Partitions {
    /// Creates the partitions. `targets` are not empty: all have ranges, none of which overlap, or all have names,
    /// none of which are equal.
    pub(crate) fn new(
        key: PartitionKeySource,
        hash: PartitionHash,
        mut targets: Vec<PartitionTarget>,
    ) -> Self {
        targets.sort_by(|a, b| a.keys.cmp(&b.keys));
        Self {
            key,
            hash,
            targets: targets.into(),
        }
    }

    /// The part of a request that holds the partition key.
    pub fn key(&self) -> &PartitionKeySource {
        &self.key
    }

    /// The conversion of a key to a number.
    pub fn hash(&self) -> PartitionHash {
        self.hash
    }

    /// The partitions in the order of their keys.
    pub fn targets(&self) -> &[PartitionTarget] {
        &self.targets
    }

    /// The partition that a request of the route belongs to.
    ///
    /// # Errors
    ///
    /// Returns the reason why the key belongs to no partition.
    pub fn find<H: RequestHead + ?Sized>(
        &self,
        head: &H,
    ) -> Result<&PartitionTarget, KeyRejection> {
        self.key.with_key(head, |key| self.partition_of(key))?
    }

    /// The partition that a key belongs to.
    ///
    /// # Errors
    ///
    /// Returns the reason why the key belongs to no partition.
    pub fn partition_of(&self, key: &[u8]) -> Result<&PartitionTarget, KeyRejection> {
        let position = match self.number(key)? {
            Some(number) => self.position(number),
            None => self.targets.binary_search_by(|target| match &target.keys {
                PartitionKeys::Name(name) => name.as_bytes().cmp(key),
                PartitionKeys::Range { .. } => std::cmp::Ordering::Less,
            }),
        };
        let position = position.map_err(|_| KeyRejection::NoPartition)?;
        self.targets.get(position).ok_or(KeyRejection::NoPartition)
    }

    /// Returns the number that is looked up in ranges. `None` if the partitions have names.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is not a number and is not hashed.
    pub fn number(&self, key: &[u8]) -> Result<Option<i64>, KeyRejection> {
        let Some((low, high)) = self.span() else {
            return Ok(None);
        };
        let number = match self.hash {
            PartitionHash::None => str::from_utf8(key).ok().and_then(|key| key.parse().ok()),
            PartitionHash::Fnv1a64 => Some(hash::spread(hash::fnv1a64(key), low, high)),
        };
        number.map(Some).ok_or(KeyRejection::NotANumber)
    }

    /// The share of all keys that a partition gets if keys are hashed, from 0 to 1. `None` if they are not
    /// hashed.
    pub fn expected_share(&self, target: &PartitionTarget) -> Option<f64> {
        let numbers = |low: i64, high: i64| low.abs_diff(high) as f64 + 1.0;
        match (self.hash, self.span()?, &target.keys) {
            (PartitionHash::Fnv1a64, (first, last), PartitionKeys::Range { low, high }) => {
                Some(numbers(*low, *high) / numbers(first, last))
            }
            _ => None,
        }
    }

    /// The least and the greatest number of all ranges.
    fn span(&self) -> Option<(i64, i64)> {
        let (first, last) = (self.targets.first()?, self.targets.last()?);
        match (&first.keys, &last.keys) {
            (PartitionKeys::Range { low, .. }, PartitionKeys::Range { high, .. }) => {
                Some((*low, *high))
            }
            _ => None,
        }
    }

    fn position(&self, number: i64) -> Result<usize, usize> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        self.targets.binary_search_by(|target| match target.keys {
            PartitionKeys::Range { high, .. } if high < number => Less,
            PartitionKeys::Range { low, .. } if low > number => Greater,
            PartitionKeys::Range { .. } => Equal,
            PartitionKeys::Name(_) => Greater,
        })
    }
}

impl PartitionTarget {
    /// The cluster's id as the route names it.
    pub fn id(&self) -> &ClusterId {
        &self.id
    }

    /// The cluster, if it exists.
    pub fn cluster(&self) -> Option<ClusterIndex> {
        self.cluster
    }

    /// The keys that belong to it.
    pub fn keys(&self) -> &PartitionKeys {
        &self.keys
    }
}
