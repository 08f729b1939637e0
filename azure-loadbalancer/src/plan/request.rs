//! The scope of a plan.

use std::collections::BTreeSet;

use crate::service::ServiceKey;

/// The scope of a plan: everything, or one class of resources of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The only service that may change. All others stay as they are, and no orphans are removed.
    pub(crate) only: Option<Only>,
    /// The classes of resources to write.
    pub(crate) classes: Classes,
    /// The services that stay as they are, because a write for them was rejected.
    pub(crate) held: BTreeSet<ServiceKey>,
    /// True if resources of no service are left as well, for the same reason.
    pub(crate) keeps_orphans: bool,
    /// The lower-case names of pool entries that stay as they are: existing ones are kept, new ones are not
    /// added.
    pub(crate) held_members: BTreeSet<String>,
    /// True if pools lose their last members when no node takes part: the grace time is over.
    pub(crate) empties_pools: bool,
    /// The cluster's addresses from before this plan's snapshot, to which security rules may still lead.
    pub(crate) once_ours: BTreeSet<String>,
}

/// The only service that may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Only {
    pub(crate) key: ServiceKey,
    pub(crate) want: bool,
    /// The address for security rules, in place of the load balancer's. Empty: any.
    pub(crate) address: Option<String>,
}

/// The classes of resources that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) public_ips: bool,
    pub(crate) load_balancers: Balancers,
    pub(crate) security_group: bool,
}

/// The changes of load balancers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balancers {
    /// No change.
    None,
    /// Only removes a service's parts from the load balancer of the other kind: the external one for an internal
    /// service, and the reverse.
    Flipped,
    /// All changes.
    All,
}

impl Request {
    /// Returns true if only the security group is planned, so that no other part of the plan can determine an
    /// address.
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
