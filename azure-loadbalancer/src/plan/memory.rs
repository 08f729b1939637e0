//! The memory of the cluster's former addresses.

use std::collections::{BTreeSet, HashSet};

use super::cluster_state::addresses_of_cluster;
use super::{Plan, Snapshot};
use crate::config::Config;
use crate::node::Node;
use crate::service::Service;

/// The former addresses of the cluster, for as long as security rules lead to them. Nothing else identifies
/// them between the write of the load balancer and that of the security group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(BTreeSet<String>);

impl Memory {
    pub(crate) fn addresses(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// Remembers the current addresses before a plan is carried out.
    pub(crate) fn remember(
        &mut self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
        plan: &Plan,
        snapshot: &Snapshot,
    ) {
        let groups = snapshot.security_group.iter();
        let rules = groups.flat_map(|group| &group.properties.security_rules);
        let open: HashSet<&str> = rules
            .flat_map(|rule| rule.properties.destinations())
            .collect();
        self.0.retain(|address| open.contains(address.as_str()));
        // Without writes, everything can be read again.
        if !plan.actions.is_empty() {
            self.0
                .extend(addresses_of_cluster(config, services, snapshot));
            // The group may be written and the pool not.
            let nodes = nodes.iter().flat_map(|node| &node.addresses);
            self.0.extend(nodes.map(ToString::to_string));
        }
    }
}
