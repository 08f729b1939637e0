//! Replicas of stateful services, and instances of stateless ones.

use std::sync::Arc;

use super::wire_words;
use crate::cluster::ReplicaRef;
use crate::hosting::{Moment, Span};

/// A replica or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replica {
    /// Its partition and its id.
    pub key: ReplicaRef,
    /// The node that it is on.
    pub node: Arc<str>,
    /// What it does; `None` for an instance of a stateless service.
    pub role: ReplicaRole,
    /// Whether it can be used.
    pub status: ReplicaStatus,
    /// What it published, usually `{"Endpoints":{"http":"http://10.0.0.4:20001"}}`; empty before it is open.
    pub address: String,
    /// The activation of the service package that it lives in; empty for the shared one.
    pub activation_id: String,
    /// How long it took to be built the last time.
    pub last_in_build: Span,
    /// When it was placed.
    pub created_at: Moment,
    /// Since when its status is what it is.
    pub since: Moment,
    /// While it is taken out of service: until when it still answers. It is listed, but not resolved.
    pub draining_until: Option<Moment>,
    /// What is to become of it.
    pub(in crate::cluster) intent: Intent,
    /// Whether it is to be the primary as soon as it can; until then the present one stays.
    pub(in crate::cluster) heir: bool,
    /// Whether hosting has opened it, and nobody has closed it since.
    pub(in crate::cluster) opened: bool,
    /// Ports of its node that were given to it.
    pub(in crate::cluster) ports: Vec<u16>,
    /// What it really published, while something else is shown in its place.
    pub(in crate::cluster) hidden_address: Option<String>,
    /// How often its address changes by itself.
    pub(in crate::cluster) flapping: Option<Span>,
}

/// What is to become of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster) enum Intent {
    /// It stays.
    #[default]
    Stay,
    /// It goes: another one takes its place.
    Leave,
    /// It is closed and opened again on its node, in another version.
    Upgrade,
}

impl Replica {
    /// Whether the naming service gives out its address.
    pub fn is_resolvable(&self) -> bool {
        self.status == ReplicaStatus::Ready && self.draining_until.is_none()
    }
}

/// What a replica does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaRole {
    /// Not decided yet.
    Unknown,
    /// Nothing: it is an instance of a stateless service, or no longer belongs to its partition.
    None,
    /// It takes reads and writes.
    Primary,
    /// It is being built from the primary.
    IdleSecondary,
    /// It follows the primary.
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
    /// It is being built.
    InBuild,
    /// It is kept in reserve.
    Standby,
    /// It can be used.
    Ready,
    /// Its process or its node is down; its state is still there.
    Down,
    /// It is gone.
    Dropped,
}

wire_words!(ReplicaStatus {
    InBuild = "InBuild",
    Standby = "Standby",
    Ready = "Ready",
    Down = "Down",
    Dropped = "Dropped",
});
