//! Clusters with their destinations.

use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig};
use proxy_model::{ClusterId, Problem};

use super::listeners::Listener;
use super::{Group, Layout};
use crate::labels::endpoints::shortened;
use crate::labels::ids::{destination_id, part_id};
use crate::labels::read::set;
use crate::labels::replicas::{Candidate, Pool, Role};

/// The suffix of the id of a cluster of secondaries.
pub(super) const SECONDARIES: &str = "secondaries";

impl Layout<'_> {
    /// The id of the cluster of one part of the service.
    pub(super) fn cluster_id(
        &self,
        group: Group<'_, '_>,
        listener: &Listener,
        pool: Pool,
    ) -> ClusterId {
        let r#use = (pool == Pool::Reads).then_some(SECONDARIES);
        part_id(&self.labelled.cluster_id, group.id, listener.in_id(), r#use)
    }
}

/// Makes all clusters.
///
/// # Errors
///
/// Returns an error if two clusters would have the same id, since a listener has the name of something
/// else.
pub(super) fn build(layout: &Layout<'_>, config: &mut ProxyConfig) -> Result<(), Problem> {
    for group in layout.groups() {
        for listener in &layout.listeners {
            for &pool in layout.pools {
                let id = layout.cluster_id(group, listener, pool);
                let cluster = cluster(layout, group, listener, pool);
                if config.clusters.insert(id.clone(), cluster).is_some() {
                    let id = shortened(id.as_str());
                    let message = format!("two parts of the service would be the cluster `{id}`");
                    let problem = Problem::error("", "conflicting_clusters", message);
                    return Err(problem.with_suggestion("rename the listener"));
                }
            }
        }
    }
    Ok(())
}

fn cluster(
    layout: &Layout<'_>,
    group: Group<'_, '_>,
    listener: &Listener,
    pool: Pool,
) -> ClusterConfig {
    let mut cluster = layout.labelled.cluster.clone();
    let metadata = cluster.metadata.get_or_insert_default();
    if let Some(id) = group.id {
        set(metadata, "__SF.PartitionId", id);
    }
    if let Some(name) = listener.in_id() {
        set(metadata, "__SF.ListenerName", name);
    }
    for candidate in group.candidates {
        let Some(tier) = pool.tier(candidate.role) else {
            continue;
        };
        if listener.is_missing_at(candidate) {
            continue;
        }
        let endpoint = listener.at(candidate, layout.labelled.settings.schemes);
        let (Ok(endpoint), Ok(health)) = (endpoint, &candidate.health) else {
            continue;
        };
        let partition = &layout.service.partitions[candidate.partition].information;
        let id = destination_id(&partition.id, candidate.replica.replica_id);
        let mut destination = destination(layout, candidate, tier);
        destination.address = endpoint.url;
        destination.health.clone_from(health);
        cluster.destinations.insert(id, destination);
    }
    cluster
}

/// A destination without its addresses.
fn destination(layout: &Layout<'_>, candidate: &Candidate<'_>, tier: u32) -> DestinationConfig {
    let mut destination = layout.labelled.destination.clone();
    if tier > 0 {
        destination.priority = Some(destination.priority.unwrap_or_default() + tier);
    }
    let partition = &layout.service.partitions[candidate.partition].information;
    let metadata = destination.metadata.get_or_insert_default();
    set(metadata, "PartitionId", &partition.id);
    set(
        metadata,
        "ReplicaId",
        &candidate.replica.replica_id.to_string(),
    );
    if let Some(name) = &partition.name {
        set(metadata, "NamedPartitionName", name);
    }
    if candidate.role != Role::Stateless {
        set(
            metadata,
            "ReplicaRole",
            candidate.replica.replica_role.as_str(),
        );
    }
    destination
}
