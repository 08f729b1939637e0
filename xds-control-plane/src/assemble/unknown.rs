use std::collections::BTreeSet;
use std::sync::Arc;

use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
};

/// The datacenters with unknown state: the endpoints that a cluster has there are not known, nor whether it has
/// any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownZones {
    /// The own datacenter, which comes first.
    pub own: Arc<str>,
    /// The datacenters without known endpoints.
    pub zones: BTreeSet<Arc<str>>,
    /// True if all datacenters but the own one are unknown, since their list is.
    pub are_unlisted: bool,
}

impl UnknownZones {
    fn contains(&self, zone: &str) -> bool {
        self.zones.contains(zone) || (self.are_unlisted && *zone != *self.own)
    }

    /// The endpoints that are known, and those that are `served` where nothing is: that a datacenter has none is not
    /// concluded. Neither is that the own one has none, which would send its requests to others.
    pub(super) fn complete(
        &self,
        known: &ClusterLoadAssignment,
        served: &ClusterLoadAssignment,
    ) -> ClusterLoadAssignment {
        let mut completed = known.clone();
        let is_known = |endpoint: &LbEndpoint| {
            let mut localities = known.endpoints.iter();
            localities.any(|locality| {
                let mut endpoints = locality.lb_endpoints.iter();
                endpoints.any(|known| address(known) == address(endpoint))
            })
        };
        for locality in &served.endpoints {
            if !self.contains(zone(locality)) {
                continue;
            }
            let mut locality = locality.clone();
            // One that has moved to another datacenter is there.
            locality.lb_endpoints.retain(|endpoint| !is_known(endpoint));
            if !locality.lb_endpoints.is_empty() {
                completed.endpoints.push(locality);
            }
        }
        let has_own = completed
            .endpoints
            .iter()
            .any(|locality| *zone(locality) == *self.own);
        for locality in &mut completed.endpoints {
            locality.priority = u32::from(has_own && *zone(locality) != *self.own);
        }
        let order = |locality: &LocalityLbEndpoints| (locality.priority, zone(locality).to_owned());
        completed.endpoints.sort_by_key(order);
        completed
    }
}

fn zone(locality: &LocalityLbEndpoints) -> &str {
    locality
        .locality
        .as_ref()
        .map_or("", |locality| &locality.zone)
}

fn address(endpoint: &LbEndpoint) -> Option<&HostIdentifier> {
    endpoint.host_identifier.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::testing::{assignment_in, ports};

    #[test]
    fn what_is_served_stays_where_nothing_is_known() {
        let unknown = |zones: &[&str], are_unlisted| UnknownZones {
            own: "sas".into(),
            zones: zones.iter().map(|zone| Arc::from(*zone)).collect(),
            are_unlisted,
        };
        let served = assignment_in("c", &[("sas", 0, &[1]), ("iva", 1, &[2]), ("vla", 1, &[3])]);
        // Unknown datacenters, what is known, and what comes of it.
        type Zones<'a> = &'a [(&'a str, u32, &'a [u32])];
        let cases: [(UnknownZones, Zones<'_>, Zones<'_>); 6] = [
            (unknown(&["vla"], false), &[], &[("vla", 0, &[3])]),
            (
                unknown(&["sas"], false),
                &[("vla", 0, &[4])],
                &[("sas", 0, &[1]), ("vla", 1, &[4])],
            ),
            (
                unknown(&["iva"], false),
                &[("sas", 0, &[9])],
                &[("sas", 0, &[9]), ("iva", 1, &[2])],
            ),
            (
                unknown(&[], true),
                &[("sas", 0, &[1])],
                &[("sas", 0, &[1]), ("iva", 1, &[2]), ("vla", 1, &[3])],
            ),
            (
                unknown(&["vla"], false),
                &[("sas", 0, &[3])],
                &[("sas", 0, &[3])],
            ),
            (unknown(&["far"], false), &[], &[]),
        ];
        for (unknown, known, expected) in cases {
            let completed = unknown.complete(&assignment_in("c", known), &served);
            assert_eq!(
                completed,
                assignment_in("c", expected),
                "{unknown:?} {known:?}"
            );
            let again = unknown.complete(&assignment_in("c", known), &completed);
            assert_eq!(ports(&again), ports(&completed));
        }
    }
}
