//! Partitions: how many clusters they become, and which keys each has.

use std::collections::HashSet;

use proxy_model::ClusterId;
use proxy_model::Problem;
use proxy_model::config::{PartitionHash, PartitionedCluster};

use super::endpoints::shortened;
use super::options::PartitionMode;
use super::read::Settings;
use crate::model::PartitionKind;
use crate::service::PartitionDescription;

/// The query parameter that chooses a partition, as in the gateway of Service Fabric itself and in the
/// successor of YARP's integration.
pub(super) const PARTITION_ID: &str = "PartitionID";

/// Returns true if partitions are distinguished by keys, even if there is only one at the moment.
pub(super) fn have_keys(partitions: &[PartitionDescription]) -> bool {
    let singleton = |partition: &PartitionDescription| {
        partition.information.service_partition_kind == PartitionKind::Singleton
    };
    partitions.len() > 1 || partitions.iter().any(|partition| !singleton(partition))
}

/// The positions of the partitions in an order that does not depend on how they were listed, each id once.
pub(super) fn sorted(partitions: &[PartitionDescription]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..partitions.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |i: usize| {
            let information = &partitions[i].information;
            (
                information.low_key,
                information.name.as_deref(),
                information.id.as_str(),
            )
        };
        key(a).cmp(&key(b))
    });
    let mut seen = HashSet::new();
    order.retain(|&i| seen.insert(partitions[i].information.id.to_ascii_lowercase()));
    order
}

/// The handling of one service's partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// One cluster has all of them.
    Merged,
    /// Each partition is a cluster. A query parameter with the partition's id chooses it.
    ById,
    /// Each partition is a cluster. The partition key of the request chooses it.
    ByKey,
}

impl Division {
    /// Returns the division of a service. A service that can never have a second partition is not divided.
    /// Every other is, even if it has only one at the moment: requests for another partition are rejected
    /// from the start, and ids stay stable.
    pub(super) fn of(settings: &Settings, partitions: &[PartitionDescription]) -> Self {
        match settings.partitions {
            PartitionMode::PerPartition if have_keys(partitions) => Self::ById,
            PartitionMode::Key if have_keys(partitions) => Self::ByKey,
            _ => Self::Merged,
        }
    }
}

/// Rejects partitions that cannot be distinguished.
pub(super) fn check_ids(
    partitions: &[PartitionDescription],
    order: &[usize],
) -> Result<(), Problem> {
    let mut ids = order.iter().map(|&i| partitions[i].information.id.as_str());
    match ids.find(|id| id.trim().is_empty()) {
        None => Ok(()),
        Some(_) => {
            let message = "a partition has no id".to_owned();
            Err(Problem::error("", "unreadable_partitions", message))
        }
    }
}

/// The keys of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Range(i64, i64),
    Name(String),
}

impl Keys {
    /// The entry of a route.
    pub(super) fn entry(&self, cluster_id: ClusterId) -> PartitionedCluster {
        let (low_key, high_key, name) = match self {
            Self::Range(low, high) => (Some(*low), Some(*high), None),
            Self::Name(name) => (None, None, Some(name.clone())),
        };
        PartitionedCluster {
            cluster_id,
            low_key,
            high_key,
            name,
        }
    }
}

/// Returns the keys of each partition in `order`.
///
/// # Errors
///
/// Returns an error if the cluster does not report the keys of a partition, or reports the same one for
/// two. Requests then have no unique partition.
pub(super) fn keys(
    partitions: &[PartitionDescription],
    order: &[usize],
) -> Result<Vec<Keys>, Problem> {
    let mut keys: Vec<Keys> = Vec::with_capacity(order.len());
    let mut names = HashSet::new();
    for &i in order {
        let information = &partitions[i].information;
        let id = shortened(&information.id);
        let unreadable = |message: String| Problem::error("", "unreadable_partitions", message);
        let own = match (
            &information.service_partition_kind,
            information.low_key,
            information.high_key,
            &information.name,
        ) {
            (PartitionKind::Int64Range, Some(low), Some(high), _) if low <= high => {
                Keys::Range(low, high)
            }
            (PartitionKind::Named, _, _, Some(name)) if !name.is_empty() => {
                Keys::Name(name.clone())
            }
            (kind, ..) => {
                let message =
                    format!("the partition {id} of the kind {kind} has no keys in its description");
                return Err(unreadable(message));
            }
        };
        let conflict = match (&own, keys.last()) {
            (Keys::Name(name), Some(Keys::Name(_)) | None) => !names.insert(name.clone()),
            // They are sorted by their lowest keys.
            (Keys::Range(low, _), Some(Keys::Range(_, before))) => low <= before,
            (Keys::Range(..), None) => false,
            _ => true,
        };
        if conflict {
            let message = format!("the partition {id} has keys that another one has as well");
            return Err(unreadable(message));
        }
        keys.push(own);
    }
    Ok(keys)
}

/// Names are compared, so they are not hashed.
pub(super) fn hash_for(keys: &[Keys], hash: PartitionHash) -> PartitionHash {
    match keys.first() {
        Some(Keys::Range(..)) => hash,
        _ => PartitionHash::None,
    }
}
