//! Route configurations reduced to the clusters that a client has.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message;
use xds_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};

use crate::assemble::{encode, targets, without};
use crate::snapshot::{Bodies, Resource, ResourceSet, Subscription};

/// Maximum number of cached results. Clients of one kind reject the same clusters, so there are few
/// different results at a time.
const ANSWERS: usize = 8;

/// Route configurations without the routes to some clusters, made once for all clients that lack the same.
#[derive(Debug, Default)]
pub(super) struct Narrowed(Mutex<Vec<NarrowedRoutes>>);

/// The clusters that are lacking, and the routes without them.
type NarrowedRoutes = (BTreeSet<Arc<str>>, Arc<ResourceSet>);

impl Narrowed {
    pub(super) fn of(
        &self,
        routes: &ResourceSet,
        clusters: &BTreeSet<Arc<str>>,
    ) -> Arc<ResourceSet> {
        let mut answers = self.0.lock();
        if let Some((_, answer)) = answers.iter().find(|(lacking, _)| lacking == clusters) {
            return Arc::clone(answer);
        }
        let answer: Arc<ResourceSet> = Arc::new(
            (routes.iter())
                .map(|routes| narrow(routes, clusters))
                .collect(),
        );
        if answers.len() == ANSWERS {
            answers.remove(0);
        }
        answers.push((clusters.clone(), Arc::clone(&answer)));
        answer
    }
}

/// Maximum number of names for the exact check, whose time grows with them.
const NAMES: usize = 64;

/// Returns true if an encoded message may contain one of these names as a string.
pub(crate) fn names_any(resource: &Resource, names: &BTreeSet<Arc<str>>) -> bool {
    let body = resource.body(Subscription::Aggregated);
    let is_named = |name: &Arc<str>| {
        let mut field = Vec::with_capacity(name.len() + 2);
        prost::encoding::encode_varint(name.len() as u64, &mut field);
        field.extend_from_slice(name.as_bytes());
        body.windows(field.len()).any(|window| window == field)
    };
    names.len() > NAMES || names.iter().any(is_named)
}

fn narrow(resource: &Arc<Resource>, clusters: &BTreeSet<Arc<str>>) -> Arc<Resource> {
    // Only aggregated streams know what their client lacks. Undecodable resources are left to the client.
    let body = resource.body(Subscription::Aggregated);
    let Ok(mut routes) = RouteConfiguration::decode(body.clone()) else {
        return Arc::clone(resource);
    };
    let lost: BTreeSet<&str> = clusters.iter().map(|name| &**name).collect();
    let leads_there = |host: &VirtualHost| targets(host).any(|target| lost.contains(target));
    if !routes.virtual_hosts.iter().any(leads_there) {
        return Arc::clone(resource);
    }
    routes.virtual_hosts = (routes.virtual_hosts.iter())
        .filter_map(|host| without(host, &lost))
        .collect();
    let body = Bodies::Same(encode(&routes));
    Arc::new(Resource::new(Arc::clone(resource.name()), body))
}
