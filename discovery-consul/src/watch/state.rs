//! What is known of a datacenter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use discovery_core::Moment;

use super::instance::ServiceInstance;

/// The services of a datacenter by name.
pub type Services = BTreeMap<Arc<str>, Arc<ServiceState>>;

/// What is known of one service in one datacenter: the last good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceState {
    /// Its instances, healthy or not, by node and id.
    pub instances: Vec<ServiceInstance>,
}

/// What is known of a datacenter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DatacenterState {
    /// Its name.
    pub datacenter: Arc<str>,
    /// Its services: each as it was last read.
    pub services: Services,
    /// Whether everything was read at least once, but for what is [unknown](field@Self::unknown) after
    /// [a while](super::WatchOptions::unread_grace).
    pub is_complete: bool,
    /// Why it cannot be asked at the moment, with advice. The services are what was last known.
    pub failure: Option<Arc<str>>,
    /// Services that could not be read when they were last asked for, and why.
    pub unread: BTreeMap<Arc<str>, Arc<str>>,
    /// Services that are listed and could not be read yet, not even once: nobody can say which instances they have, or whether
    /// any. They are among [`unread`](Self::unread).
    pub unknown: BTreeSet<Arc<str>>,
    /// How many instances are kept although the servers do not know them any more.
    pub held: usize,
    /// Whether the token seems to have lost its rights.
    pub is_hidden: bool,
    /// Whether nothing at all is shown to us, not even Consul's own service, as to a token that may read nothing.
    pub is_blank: bool,
    /// When there was the last good answer.
    pub last_ok: Option<Moment>,
}

impl DatacenterState {
    pub(super) fn unknown(datacenter: Arc<str>) -> Self {
        Self {
            datacenter,
            services: Services::new(),
            is_complete: false,
            failure: None,
            unread: BTreeMap::new(),
            unknown: BTreeSet::new(),
            held: 0,
            is_hidden: false,
            is_blank: false,
            last_ok: None,
        }
    }

    /// Whether there is a difference that somebody should be woken for.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let ages_aside = Self {
            last_ok: other.last_ok,
            ..self.clone()
        };
        ages_aside != *other
    }
}
