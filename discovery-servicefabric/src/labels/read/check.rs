//! Trial compilation of the labels, with problems reported at the labels' own keys.
//!
//! The publisher of the configuration compiles it again. Here it is compiled before one route becomes many,
//! so that one mistake is one problem.

use std::collections::HashSet;

use discovery_core::labels::{LabelNode, LabelTree};
use proxy_model::config::{
    DestinationConfig, PartitionHash, PartitionKey, PartitionedCluster, PartitionedClusters,
    ProxyConfig, RouteConfig,
};
use proxy_model::{CompileOptions, Problem, RouteId, Severity, Snapshot};

use super::routes::ServiceRoute;
use super::{Labelled, Roles};
use crate::labels::options::PartitionMode;
use crate::labels::partitions;
use crate::labels::yarp::Unsupported;
use crate::service::ServiceDescription;

/// Maximum number of errors that are reported, since each is looked up in the labels.
const MOST_ERRORS: usize = 200;

/// Id of a route that no labels can name.
const READ_ROUTE: &str = "reads by header";

pub(super) fn check(
    tree: &LabelTree<'_>,
    service: &ServiceDescription,
    labelled: &Labelled,
    unsupported: Option<Unsupported>,
) {
    let root = &tree.root();
    // Problems that follow from these are not reported again.
    let known = tree.error_pointers();
    let known: HashSet<&str> = known.iter().map(|pointer| thing(pointer)).collect();
    let is_about_keys = |pointer: &&str| pointer.contains(".PartitionKey");
    if !known.iter().any(is_about_keys)
        && let Some(problem) = missing_key(root, service, labelled)
    {
        root.report(problem);
        return;
    }
    let mut config = ProxyConfig::default();
    let mut cluster = labelled.cluster.clone();
    let sample = DestinationConfig {
        address: "https://destination.invalid/".to_owned(),
        ..labelled.destination.clone()
    };
    cluster.destinations.insert("sample".into(), sample);
    config.clusters.insert(labelled.cluster_id.clone(), cluster);
    for route in &labelled.routes {
        let id = RouteId::from(route.name.as_str());
        config.routes.insert(id, draft(route, service, labelled));
    }
    if let Some(route) = read_route(labelled) {
        config.routes.insert(READ_ROUTE.into(), route);
    }
    let options = CompileOptions::default();
    // Valid parts are checked even if there are errors: the program's policies are not known here.
    let (snapshot, problems) = Snapshot::compile_isolated(config, &options);
    let errors = problems
        .into_iter()
        .filter(|problem| problem.severity == Severity::Error && !names_policy(problem))
        .take(MOST_ERRORS);
    let unsupported = unsupported.map(|unsupported| unsupported(&snapshot));
    // Problems of the sample concern no label.
    let unsupported = unsupported.into_iter().flatten().filter(|problem| {
        let path = problem.pointer.strip_prefix("/Clusters/");
        !path.is_some_and(|path| path.contains("/Destinations/"))
    });
    for mut problem in errors.chain(unsupported) {
        problem.pointer = place(root, &problem.pointer, labelled);
        if !known.contains(thing(&problem.pointer)) {
            root.report(problem);
        }
    }
}

/// Returns the pointer of the list element that a label is in, or else of the label itself.
fn thing(pointer: &str) -> &str {
    match pointer.find("].") {
        Some(end) => &pointer[..=end],
        None => pointer,
    }
}

/// Returns a route with only the header that marks a read, which every route will have.
fn read_route(labelled: &Labelled) -> Option<RouteConfig> {
    let Roles::ByHeader(header) = &labelled.settings.roles else {
        return None;
    };
    let mut route = RouteConfig::default();
    route.r#match.path = Some("/".to_owned());
    route.r#match.headers = Some(vec![header.clone()]);
    Some(route)
}

/// Returns true if the problem is an unknown policy, filter or layer. The program may have one of that
/// name, which only the publisher knows.
fn names_policy(problem: &Problem) -> bool {
    let named = problem.code.strip_prefix("unknown_");
    named.is_some_and(|kind| kind.ends_with("_policy") || matches!(kind, "filter" | "layer"))
}

/// Returns the part of a request that holds the key, if a key selects the route's cluster.
fn key<'l>(
    route: &'l ServiceRoute,
    service: &ServiceDescription,
    labelled: &'l Labelled,
) -> Option<(&'l PartitionKey, PartitionHash)> {
    let settings = &labelled.settings;
    let by_key = settings.partitions == PartitionMode::Key
        && partitions::have_keys(&service.partitions)
        && !route.goes_elsewhere();
    let (key, hash) = match &route.key {
        Some((key, hash)) => (key, *hash),
        None => (&settings.key, settings.hash),
    };
    by_key.then_some((key, hash))
}

/// Returns a problem if a key selects the cluster but its place is not set.
fn missing_key(
    root: &LabelNode<'_>,
    service: &ServiceDescription,
    labelled: &Labelled,
) -> Option<Problem> {
    let mut keys = labelled
        .routes
        .iter()
        .filter_map(|route| key(route, service, labelled));
    keys.any(|(key, _)| *key == PartitionKey::default())
        .then(|| {
            let pointer = root.locate(["Backend", "ServiceFabric", "PartitionMode"]);
            let message = "a key selects the partition, but its place in requests is not set";
            Problem::error(pointer, "missing_partition_key", message).with_suggestion(
                "add `YARP.Backend.ServiceFabric.PartitionKey.Header`, `.Query` or `.RouteValue`",
            )
        })
}

/// The route with something to go to.
fn draft(route: &ServiceRoute, service: &ServiceDescription, labelled: &Labelled) -> RouteConfig {
    let mut config = route.config.clone();
    if route.goes_elsewhere() {
        return config;
    }
    let Some((key, hash)) = key(route, service, labelled) else {
        config.cluster_id = Some(labelled.cluster_id.clone());
        return config;
    };
    config.partitioned_clusters = Some(PartitionedClusters {
        key: key.clone(),
        hash,
        // Labels contain only the keys, so any range will do.
        partitions: vec![PartitionedCluster {
            cluster_id: labelled.cluster_id.clone(),
            low_key: Some(0),
            high_key: Some(0),
            name: None,
        }],
    });
    config
}

/// The label that a place in the configuration comes from.
fn place(root: &LabelNode<'_>, pointer: &str, labelled: &Labelled) -> String {
    let tokens: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (kind, id, below) = match tokens.as_slice() {
        [kind, id, below @ ..] => (*kind, *id, below),
        _ => return String::new(),
    };
    if kind != "Routes" {
        return match below {
            ["Destinations", _, path @ ..] => {
                root.locate(["Destinations"].into_iter().chain(path.iter().copied()))
            }
            path => root.locate(["Backend"].into_iter().chain(path.iter().copied())),
        };
    }
    let is_known = labelled.routes.iter().any(|route| route.name == id);
    let within = |path: &[&str]| {
        let route = ["Routes", id].into_iter();
        root.locate(route.chain(path.iter().copied()))
    };
    match below {
        [.., name] if id == READ_ROUTE => {
            let label = if *name == "Name" { "Name" } else { "Value" };
            root.locate(["Backend", "ServiceFabric", "RoleRouting", "Header", label])
        }
        _ if !is_known => root.locate(["Routes"]),
        ["Match", "Headers", i, rest @ ..] => listed(root, id, "MatchHeaders", i, rest),
        ["Match", "QueryParameters", i, rest @ ..] => listed(root, id, "MatchQueries", i, rest),
        ["Match", name, ..] => within(&[name]),
        ["Transforms", i, rest @ ..] => {
            // The first one may not be the labels'.
            let added = usize::from(labelled.settings.path_prefix);
            match i.parse::<usize>().ok().and_then(|i| i.checked_sub(added)) {
                Some(i) => listed(root, id, "Transforms", &i.to_string(), rest),
                None => within(&[]),
            }
        }
        ["WeightedClusters", i, rest @ ..] => listed(root, id, "WeightedClusters", i, rest),
        ["PartitionedClusters", "Key", ..] => {
            let own = labelled
                .routes
                .iter()
                .any(|route| route.name == id && route.key.is_some());
            match own {
                true => within(&["ServiceFabric", "PartitionKey"]),
                false => root.locate(["Backend", "ServiceFabric", "PartitionKey"]),
            }
        }
        path => within(path),
    }
}

/// An element of a list: positions in the configuration have no gaps, those in labels may have.
fn listed(root: &LabelNode<'_>, route: &str, list: &str, position: &str, rest: &[&str]) -> String {
    let node = root.child("Routes").child(route);
    let elements = node.elements(list);
    let element = position.parse().ok().and_then(|i: usize| elements.get(i));
    let index = element.map_or_else(String::new, |(index, _)| format!("[{index}]"));
    let path = [list, &index];
    node.locate(path.into_iter().chain(rest.iter().copied()))
}
