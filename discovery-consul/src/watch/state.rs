//! The known state of a datacenter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use discovery_core::Timestamp;

use super::instance::ServiceInstance;

/// The services of a datacenter by name.
pub type Services = BTreeMap<Arc<str>, Arc<ServiceState>>;

/// The known state of one service in one datacenter: the last known good result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceState {
    /// The instances, healthy or not, sorted by node and id.
    pub instances: Vec<ServiceInstance>,
}

/// The known state of a datacenter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DatacenterState {
    /// The datacenter's name.
    pub datacenter: Arc<str>,
    /// The datacenter's services, each as it was last read.
    pub services: Services,
    /// True if everything was read at least once, except the services that are
    /// [unknown](field@Self::unknown) after [a while](super::WatchOptions::unread_grace).
    pub is_complete: bool,
    /// The reason why it cannot be read at the moment, with a hint for the operator. The services are the
    /// last known ones.
    pub failure: Option<Arc<str>>,
    /// True if the reason is that the agent rejects the token.
    pub(crate) is_rejected: bool,
    /// Services whose last read failed, with the reasons.
    pub unread: BTreeMap<Arc<str>, Arc<str>>,
    /// Services that are listed but have never been read, so that their instances are unknown. They are
    /// among [`unread`](Self::unread).
    pub unknown: BTreeSet<Arc<str>>,
    /// Number of instances that are kept although the servers no longer know them.
    pub held: usize,
    /// True if the token seems to have lost its rights.
    pub is_hidden: bool,
    /// True if the servers return nothing at all, not even Consul's own service, as for a token without
    /// read access.
    pub is_blank: bool,
    /// The time of the last known good result.
    pub last_ok: Option<Timestamp>,
}

impl DatacenterState {
    pub(super) fn unknown(datacenter: Arc<str>) -> Self {
        Self {
            datacenter,
            services: Services::new(),
            is_complete: false,
            failure: None,
            is_rejected: false,
            unread: BTreeMap::new(),
            unknown: BTreeSet::new(),
            held: 0,
            is_hidden: false,
            is_blank: false,
            last_ok: None,
        }
    }

    /// Returns true if there is a difference that subscribers should be notified of.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let ages_aside = Self {
            last_ok: other.last_ok,
            ..self.clone()
        };
        ages_aside != *other
    }
}
