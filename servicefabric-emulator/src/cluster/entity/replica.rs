//! Replicas of stateful services, and instances of stateless ones.

use std::sync::Arc;

use super::wire_words;
use crate::cluster::ReplicaRef;
use crate::hosting::{Span, Timestamp};

/// A replica or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replica {
    /// The ids of the partition and the replica.
    pub key: ReplicaRef,
    /// The node that it is on.
    pub node: Arc<str>,
    /// The role. `None` for an instance of a stateless service.
    pub role: ReplicaRole,
    /// The status.
    pub status: ReplicaStatus,
    /// The published address, usually `{"Endpoints":{"http":"http://10.0.0.4:20001"}}`. Empty before the
    /// replica is open.
    pub address: String,
    /// The activation id of the service package that hosts it. Empty for the shared one.
    pub activation_id: String,
    /// The duration of the last build.
    pub last_in_build: Span,
    /// The time of placement.
    pub created_at: Timestamp,
    /// The time of the last change of status.
    pub since: Timestamp,
    /// The time until which a draining instance still responds. It is listed, but not resolved.
    pub draining_until: Option<Timestamp>,
    /// The planned change.
    pub(in crate::cluster) intent: Intent,
    /// True if the replica becomes the primary as soon as it can. Until then the present primary stays.
    pub(in crate::cluster) heir: bool,
    /// True if hosting has opened the replica, and it has not been closed since.
    pub(in crate::cluster) opened: bool,
    /// The ports of its node that are assigned to it.
    pub(in crate::cluster) ports: Vec<u16>,
    /// The address that the replica really published while another one is shown.
    pub(in crate::cluster) hidden_address: Option<String>,
    /// The interval at which the address changes by itself.
    pub(in crate::cluster) flapping: Option<Span>,
}

/// The planned change of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster) enum Intent {
    /// The replica stays.
    #[default]
    Stay,
    /// The replica leaves, and another one replaces it.
    Leave,
    /// The replica is closed and reopened on its node in another version.
    Upgrade,
}

impl Replica {
    /// Returns true if the naming service returns the address of the replica.
    pub fn is_resolvable(&self) -> bool {
        self.status == ReplicaStatus::Ready && self.draining_until.is_none()
    }
}

/// The role of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaRole {
    /// The role is not decided yet.
    Unknown,
    /// No role: an instance of a stateless service, or a replica that no longer belongs to its partition.
    None,
    /// The replica serves reads and writes.
    Primary,
    /// The replica is being built from the primary.
    IdleSecondary,
    /// The replica follows the primary.
    ActiveSecondary,
}

wire_words!(ReplicaRole {
    Unknown = "Unknown",
    None = "None",
    Primary = "Primary",
    IdleSecondary = "IdleSecondary",
    ActiveSecondary = "ActiveSecondary",
});

/// The status of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaStatus {
    /// The replica is being built.
    InBuild,
    /// The replica is kept in reserve.
    Standby,
    /// The replica can be used.
    Ready,
    /// The process or node of the replica is down. Its state still exists.
    Down,
    /// The replica no longer exists.
    Dropped,
}

wire_words!(ReplicaStatus {
    InBuild = "InBuild",
    Standby = "Standby",
    Ready = "Ready",
    Down = "Down",
    Dropped = "Dropped",
});
