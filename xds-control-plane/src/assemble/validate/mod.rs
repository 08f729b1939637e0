//! The validation of resources by Envoy's rules.
//!
//! Envoy rejects a whole response for one bad resource in it, and a whole route configuration for one bad
//! virtual host, so no bad resource may be sent. The rules are those of the `validate` annotations of
//! Envoy's API and those observed in Envoy 1.40. Where the two engines of regular expressions differ, an
//! expression is rather rejected here than there.

mod assignment;
mod cluster;
mod listener;
pub(crate) mod re2_size;
mod regex;
mod route;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use xds_types::pb::google::protobuf::Duration as ProtoDuration;

use super::lost::targets;
use super::outcome::Reason;
use super::services::ServiceResources;

/// The most priorities that Envoy has: 0 to 128.
const MAX_PRIORITY: u32 = 128;

/// Returns the clusters and endpoints of a service that have the name of the control plane's own cluster. Envoy would
/// keep the cluster of its bootstrap, and the routes of the service would lead to the control plane.
pub(super) fn reserved_names(resources: &ServiceResources, xds_cluster: &str) -> Vec<Reason> {
    let mut findings = Findings::default();
    let clusters = resources.clusters.iter().map(|cluster| &cluster.name);
    let assigned = resources.assignments.iter().map(|of| &of.cluster_name);
    let of_hosts = resources.virtual_hosts.iter().flat_map(targets);
    let mut names: BTreeSet<&str> = clusters.chain(assigned).map(String::as_str).collect();
    names.extend(of_hosts);
    if names.contains(xds_cluster) {
        findings.of(format!("cluster {}", shown(xds_cluster)));
        findings.reject(
            "name",
            "is the name of the control plane's cluster in the bootstraps (`xdsCluster`): requests would get to the control \
             plane; give the service another name",
        );
    }
    findings.reasons
}

/// Returns all problems of a service.
pub(super) fn validate(resources: &ServiceResources) -> Vec<Reason> {
    let mut findings = Findings::default();
    let mut names = BTreeSet::new();
    for cluster in &resources.clusters {
        findings.of(format!("cluster {}", shown(&cluster.name)));
        if !names.insert(cluster.name.as_str()) {
            findings.reject("name", "is the name of two clusters of this service");
        }
        cluster::validate(cluster, &mut findings);
    }
    let mut assigned = BTreeSet::new();
    for assignment in &resources.assignments {
        findings.of(format!("endpoints {}", shown(&assignment.cluster_name)));
        if !assigned.insert(assignment.cluster_name.as_str()) {
            findings.reject("cluster_name", "has endpoints twice in this service");
        }
        assignment::validate(assignment, &mut findings);
    }
    for virtual_host in &resources.virtual_hosts {
        findings.of(format!("virtual host {}", shown(&virtual_host.name)));
        route::validate(virtual_host, &mut findings);
    }
    let mut listeners = BTreeSet::new();
    for listener in &resources.listeners {
        findings.of(format!("listener {}", shown(&listener.name)));
        if !listeners.insert(listener.name.as_str()) {
            findings.reject("name", "is the name of two listeners of this service");
        }
        listener::validate(listener, &mut findings);
    }
    findings.reasons
}

/// Returns the problems of an endpoint list that is sent without the rest of its service.
pub(super) fn validate_assignment(
    assignment: &xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment,
) -> Vec<Reason> {
    let mut findings = Findings::default();
    findings.of(format!("endpoints {}", shown(&assignment.cluster_name)));
    assignment::validate(assignment, &mut findings);
    findings.reasons
}

fn shown(name: &str) -> String {
    discovery_core::text::shortened(name, 200)
}

/// The problems found, and the current resource.
#[derive(Debug, Default)]
struct Findings {
    resource: String,
    reasons: Vec<Reason>,
}

/// No service has more reasons than one reads.
const MOST_REASONS: usize = 50;

impl Findings {
    fn of(&mut self, resource: String) {
        self.resource = resource;
    }

    fn reject(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.reasons.len() < MOST_REASONS {
            self.reasons.push(Reason {
                resource: self.resource.clone(),
                field: field.into(),
                message: message.into(),
            });
        }
    }

    /// Checks a name, which must not be empty.
    fn name(&mut self, field: &str, name: &str) {
        if name.is_empty() {
            self.reject(field, "must not be empty");
        }
    }

    /// Checks a time, if it is set, which must be longer than 0.
    fn positive(&mut self, field: &str, time: Option<&ProtoDuration>) {
        if let Some(time) = time
            && time_of(time).is_none_or(|time| time.is_zero())
        {
            self.reject(field, "has to be more than 0s");
        }
    }

    /// Checks a time, if it is set, which must not be negative.
    fn not_negative(&mut self, field: &str, time: Option<&ProtoDuration>) {
        if let Some(time) = time
            && time_of(time).is_none()
        {
            self.reject(field, "is no length of time");
        }
    }
}

/// Returns a duration, or `None` if it is negative or invalid.
fn time_of(time: &ProtoDuration) -> Option<Duration> {
    let seconds = u64::try_from(time.seconds).ok()?;
    let nanos = u32::try_from(time.nanos).ok()?;
    (nanos < 1_000_000_000 && seconds <= 315_576_000_000).then(|| Duration::new(seconds, nanos))
}
