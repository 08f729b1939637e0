//! Snapshots for tests, written as `name=content`.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{
    HeaderMatcher, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, WeightedCluster,
};

use crate::proto::number;
use crate::snapshot::{Bodies, Resource, ResourceSet, ResourceType, Snapshot};

pub(crate) type Part = (ResourceType, Arc<ResourceSet>);

pub(crate) fn resource(name: &str, content: &str) -> Arc<Resource> {
    let body = Bytes::copy_from_slice(content.as_bytes());
    Arc::new(Resource::new(name, Bodies::Same(body)))
}

pub(crate) fn part(resource_type: ResourceType, resources: &[&str]) -> Part {
    let set = resources
        .iter()
        .map(|text| {
            let (name, content) = text.split_once('=').unwrap();
            resource(name, content)
        })
        .collect();
    (resource_type, Arc::new(set))
}

pub(crate) fn clusters(resources: &[&str]) -> Part {
    part(ResourceType::Cluster, resources)
}

pub(crate) fn endpoints(resources: &[&str]) -> Part {
    part(ResourceType::Endpoint, resources)
}

pub(crate) fn listeners(resources: &[&str]) -> Part {
    part(ResourceType::Listener, resources)
}

pub(crate) fn routes(resources: &[&str]) -> Part {
    part(ResourceType::Route, resources)
}

/// Returns a route configuration that can be decoded, with a virtual host for each text. `a+b` leads to the
/// cluster `a` for requests that select it by a header, and to `b` otherwise; `a:b` splits the requests
/// between the two.
pub(crate) fn routing(name: &str, hosts: &[&str]) -> Part {
    let virtual_hosts = hosts.iter().map(|text| {
        let mut routes: Vec<_> = text.split('+').map(route_to).collect();
        let asked_for = routes.len() - 1;
        for route in routes.iter_mut().take(asked_for) {
            let wanted = route.r#match.get_or_insert_default();
            wanted.headers.push(HeaderMatcher::default());
        }
        VirtualHost {
            name: (*text).to_owned(),
            routes,
            ..VirtualHost::default()
        }
    });
    let routes = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: virtual_hosts.collect(),
        ..RouteConfiguration::default()
    };
    let body = Bodies::Same(routes.encode_to_vec().into());
    let set = [Arc::new(Resource::new(name, body))].into_iter().collect();
    (ResourceType::Route, Arc::new(set))
}

fn route_to(text: &str) -> Route {
    let weight = |name: &str| ClusterWeight {
        name: name.to_owned(),
        weight: Some(number(50)),
        ..ClusterWeight::default()
    };
    let clusters: Vec<_> = text.split(':').map(weight).collect();
    let specifier = match &*clusters {
        [one] => ClusterSpecifier::Cluster(one.name.clone()),
        _ => ClusterSpecifier::WeightedClusters(WeightedCluster {
            clusters,
            ..WeightedCluster::default()
        }),
    };
    let action = RouteAction {
        cluster_specifier: Some(specifier),
        ..RouteAction::default()
    };
    Route {
        r#match: Some(RouteMatch::default()),
        action: Some(Action::Route(action)),
        ..Route::default()
    }
}

/// Returns the targets of a route configuration's virtual hosts in the format of [`routing`], or their
/// direct responses.
pub(crate) fn shown_routing(body: &[u8]) -> Option<String> {
    let routes = RouteConfiguration::decode(body).ok()?;
    let shown = routes.virtual_hosts.iter().map(|host| {
        let shown = host.routes.iter().map(|route| match &route.action {
            Some(Action::Route(action)) => match &action.cluster_specifier {
                Some(ClusterSpecifier::Cluster(name)) => name.clone(),
                Some(ClusterSpecifier::WeightedClusters(weighted)) => {
                    let names = weighted.clusters.iter().map(|cluster| &*cluster.name);
                    names.collect::<Vec<_>>().join(":")
                }
                _ => String::new(),
            },
            Some(Action::DirectResponse(answer)) => answer.status.to_string(),
            _ => String::new(),
        });
        shown.collect::<Vec<_>>().join("+")
    });
    Some(format!("[{}]", shown.collect::<Vec<_>>().join(" ")))
}

pub(crate) fn snapshot(parts: &[Part]) -> Arc<Snapshot> {
    Arc::new(
        parts
            .iter()
            .fold(Snapshot::default(), |snapshot, (resource_type, set)| {
                snapshot.with(*resource_type, Arc::clone(set))
            }),
    )
}
