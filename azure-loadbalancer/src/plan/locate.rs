//! The load balancer that a service has, or would get.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Ingress, PlanError, Request, Snapshot, round, status};
use crate::annotations;
use crate::config::Config;
use crate::naming;
use crate::node::Node;
use crate::plan::cluster_state::ClusterState;
use crate::resources::LoadBalancer;
use crate::service::{Service, ServiceKey};

/// The load balancer that a service has, or would get.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Located {
    /// The load balancer. A missing one has a name and a location only.
    pub load_balancer: LoadBalancer,
    /// The addresses of the service on it.
    pub ingress: Vec<Ingress>,
    /// True if the load balancer exists.
    pub exists: bool,
}

pub(crate) fn locate(
    config: &Config,
    request: &Request,
    services: &[Service],
    nodes: &[Node],
    snapshot: &Snapshot,
    key: &ServiceKey,
) -> Result<Located, PlanError> {
    let mut failures = BTreeMap::new();
    let world = ClusterState::new(config, request, services, nodes, snapshot, &mut failures);
    let subject = world.subject(key);
    let found = subject.and_then(|index| status::found(&world, index, None));
    if let Some((balancer, frontend)) = found {
        return Ok(Located {
            load_balancer: balancer.clone(),
            ingress: status::ingress(&world, frontend).into_iter().collect(),
            exists: true,
        });
    }
    let name =
        match subject.filter(|index| world.subjects.get(*index).is_some_and(|s| s.is_wanted())) {
            Some(index) => {
                let placement = round::place(&world).map_err(|failures| {
                    let own = failures.into_iter().find(|(failed, _)| *failed == index);
                    own.map_or(PlanError::AddressUnknown, |(_, error)| error)
                })?;
                placement
                    .get(&index)
                    .map(|placed| placed.balancer.clone())
                    .unwrap_or_default()
            }
            None => {
                if let Some(error) = failures.remove(key) {
                    return Err(error);
                }
                let service = services.iter().find(|service| service.key == *key);
                let internal = service.is_some_and(annotations::is_internal);
                naming::load_balancer(&config.cluster_name, None, internal)
            }
        };
    let existing = world.balancer(&name);
    Ok(Located {
        load_balancer: existing.cloned().unwrap_or_else(|| LoadBalancer {
            name,
            location: Some(config.location.clone()),
            ..LoadBalancer::default()
        }),
        ingress: Vec::new(),
        exists: existing.is_some(),
    })
}
