//! How much a plan is about.

use std::collections::BTreeSet;

use crate::service::ServiceKey;

/// How much a plan is about: everything, or one class of resources of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The one service that may change; all others are left as they are, and nothing is swept.
    pub(crate) only: Option<Only>,
    /// What is written.
    pub(crate) classes: Classes,
    /// Services that are left as they are, because a write for them was refused.
    pub(crate) held: BTreeSet<ServiceKey>,
    /// Whether what belongs to no service is left as well, for the same reason.
    pub(crate) keeps_orphans: bool,
    /// The lower-case names of the entries of pools that are left as well: those that are there stay, the others stay out.
    pub(crate) held_members: BTreeSet<String>,
    /// Whether pools lose their last members when no node takes part: that has been so for long enough.
    pub(crate) empties_pools: bool,
    /// Addresses that were the cluster's before this plan's snapshot was read: a security rule may still lead there.
    pub(crate) once_ours: BTreeSet<String>,
}

/// The one service that may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Only {
    pub(crate) key: ServiceKey,
    pub(crate) want: bool,
    /// The address that security rules are made for, in place of the one that the load balancer has; empty is any.
    pub(crate) address: Option<String>,
}

/// The classes of resources that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) public_ips: bool,
    pub(crate) load_balancers: Balancers,
    pub(crate) security_group: bool,
}

/// What is done to load balancers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balancers {
    /// Nothing.
    None,
    /// Only what a service has on the load balancer of the kind that it does not ask for is removed.
    Flipped,
    /// All.
    All,
}

impl Request {
    /// Whether nothing but the security group is asked about, so that nothing else will make an address known.
    pub(crate) fn is_security_group_alone(&self) -> bool {
        self.classes.security_group && self.classes.load_balancers == Balancers::None
    }

    pub(crate) const EVERYTHING: Self = Self {
        only: None,
        classes: Classes {
            public_ips: true,
            load_balancers: Balancers::All,
            security_group: true,
        },
        held: BTreeSet::new(),
        keeps_orphans: false,
        held_members: BTreeSet::new(),
        empties_pools: false,
        once_ours: BTreeSet::new(),
    };
}
