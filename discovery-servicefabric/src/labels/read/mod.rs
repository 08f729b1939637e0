//! The content of a service's labels, independent of the service's current partitions and replicas.

mod backend;
mod check;
mod routes;
mod settings;

use discovery_core::labels::{LabelNode, LabelTree};
use proxy_model::config::{ClusterConfig, DestinationConfig};
use proxy_model::{ClusterId, Problem, pointer_to};

pub(super) use self::backend::set;
pub(super) use self::routes::ServiceRoute;
pub(super) use self::settings::{Roles, Settings};
use super::options::LabelOptions;
use super::yarp::Unsupported;
use crate::service::ServiceDescription;

/// The content of a served service's labels.
#[derive(Debug)]
pub(super) struct Labelled {
    pub(super) settings: Settings,
    pub(super) cluster_id: ClusterId,
    /// The cluster without its destinations.
    pub(super) cluster: ClusterConfig,
    pub(super) routes: Vec<ServiceRoute>,
    /// The settings that destinations share.
    pub(super) destination: DestinationConfig,
}

/// Reads everything. Problems are reported to the tree.
pub(super) fn read(
    tree: &LabelTree<'_>,
    service: &ServiceDescription,
    options: &LabelOptions,
    unsupported: Option<Unsupported>,
) -> Labelled {
    let root = tree.root();
    // Its effect was applied before the labels came here.
    root.raw("EnableDynamicOverrides");
    let backend = root.child("Backend");
    let settings = Settings::read(&backend, service, options);
    let cluster = backend::read(&backend, service);
    let cluster_id = backend::id(&backend, service);
    let destination = backend::destination(&root.child("Destinations"), &settings);
    let routes = routes::read(&root, service, &settings, &cluster_id);
    let labelled = Labelled {
        settings,
        cluster_id,
        cluster,
        routes,
        destination,
    };
    check::check(tree, service, &labelled, unsupported);
    labelled
}

/// Reports a label that does nothing.
fn no_effect(node: &LabelNode<'_>, path: &[&str], message: impl Into<String>) {
    let pointer = node.locate(path.iter().copied());
    node.report(Problem::warning(pointer, "no_effect", message));
}

/// Rejects empty values of labels that require one, perhaps because a parameter is not set.
fn require_values(node: &LabelNode<'_>, names: &[&str]) {
    for name in names {
        if node.raw(name).is_some_and(|value| value.trim().is_empty()) {
            node.report_error(
                name,
                "invalid_label",
                "the value is empty, and neither `true` nor `false`",
            );
        }
    }
}

/// Returns the problem of a label that the tree does not show: one of a route without a name.
pub(super) fn nameless_route(key: &str, prefix: &str) -> Option<Problem> {
    let rest = key.get(prefix.len()..)?;
    rest.starts_with("Routes..").then(|| {
        let message =
            "a route's name has ASCII letters, digits, `_` and `-` only, and at least one";
        Problem::error(pointer_to("", key), "invalid_route_name", message)
    })
}
