mod merging;
mod plan;
mod properties;
mod rows;
mod updates;
mod variants;

use proxy_model::config::{ClusterConfig, DestinationConfig};
use proxy_model::{CompileOptions, Snapshot};

use super::*;
use crate::catalog::CatalogOptions;
use crate::member::{Member, MemberStatus, Tags};

/// Tags in a test.
type Pairs<'t> = &'t [(&'t str, &'t str)];

/// A member that is alive, of the service `service` unless that is empty, on port 5000.
fn member(node: &str, address: &str, service: &str, more: Pairs<'_>) -> Member {
    let mut tags: Tags = [("http-port", "5000")].into();
    if !service.is_empty() {
        tags.insert("service", service);
    }
    for (key, value) in more {
        tags.insert(*key, *value);
    }
    Member::new(node, address.parse().unwrap(), tags)
}

/// An instance of `orders`, which goes by a host, as `n1` at 10.0.0.1.
fn orders(more: Pairs<'_>) -> Member {
    let mut member = member("n1", "10.0.0.1", "orders", &[("host", "orders.local")]);
    for (key, value) in more {
        member.tags.insert(*key, *value);
    }
    member
}

fn failed(member: Member) -> Member {
    member.with_status(MemberStatus::Failed)
}

fn discover(members: &[Member]) -> Discovery {
    discover_with(members, &GenerateOptions::default())
}

fn discover_with(members: &[Member], options: &GenerateOptions) -> Discovery {
    let catalog = ServiceCatalog::build(members, &CatalogOptions::default());
    discovery_of(&catalog, options)
}

/// The routes and clusters of all services, as they come to be published; they compile.
#[track_caller]
fn whole(discovery: &Discovery) -> ProxyConfig {
    let mut whole = ProxyConfig::default();
    for service in &discovery.services {
        let discovery_core::ServiceContent::Config(config) = &service.content else {
            continue;
        };
        for (id, cluster) in &config.clusters {
            let before = whole.clusters.insert(id.clone(), cluster.clone());
            assert!(before.is_none(), "two clusters {id}");
        }
        for (id, route) in &config.routes {
            let before = whole.routes.insert(id.clone(), route.clone());
            assert!(before.is_none(), "two routes {id}");
        }
    }
    let compiled = Snapshot::compile(whole.clone(), &CompileOptions::default());
    compiled.unwrap_or_else(|problems| panic!("{problems}\n{whole:#?}"));
    whole
}

/// The routes with what they match: `route:web /web/{**rest}`, `route:a host a.local`.
fn routes(config: &ProxyConfig) -> Vec<String> {
    let routes = config.routes.iter();
    routes
        .map(|(id, route)| {
            let criteria = &route.r#match;
            let hosts = criteria.hosts.iter().flatten();
            let host = hosts.map(|host| format!("host {host}"));
            let path = criteria.path.iter().cloned();
            let headers = criteria.headers.iter().flatten();
            let headers = headers.map(|header| {
                let values = header.values.iter().flatten();
                format!("{}={}", header.name, values.cloned().collect::<String>())
            });
            let all: Vec<_> = host.chain(path).chain(headers).collect();
            format!("{id} {}", all.join(" "))
        })
        .collect()
}

fn clusters(config: &ProxyConfig) -> Vec<&str> {
    config.clusters.keys().map(|id| id.as_str()).collect()
}

#[track_caller]
fn cluster<'c>(config: &'c ProxyConfig, id: &str) -> &'c ClusterConfig {
    let known = clusters(config);
    let cluster = config.clusters.get(&ClusterId::from(id));
    cluster.unwrap_or_else(|| panic!("no {id} among {known:?}"))
}

/// The destinations of a cluster with one number or text of each.
fn of_each<T>(cluster: &ClusterConfig, of: impl Fn(&DestinationConfig) -> T) -> Vec<(&str, T)> {
    let destinations = cluster.destinations.iter();
    destinations.map(|(id, d)| (id.as_str(), of(d))).collect()
}

fn metadata<'d>(destination: &'d DestinationConfig, key: &str) -> Option<&'d str> {
    let metadata = destination.metadata.as_ref()?;
    metadata.get(key).map(String::as_str)
}

/// Returns all problems: those of the whole, then those of the services by name.
fn told(discovery: &Discovery) -> Vec<String> {
    let of_services =
        (discovery.services.iter()).flat_map(|s| s.problems.iter().chain(&s.rejected));
    let all = discovery.problems.iter().chain(of_services);
    all.map(|problem| format!("{} {}", problem.pointer, problem.code))
        .collect()
}
