//! Converts this project's own model to Envoy's resources. The crate `discovery-xds` reads them.
//!
//! [`to_envoy`] makes virtual hosts, clusters and endpoints from a [`Snapshot`], so that any provider of
//! configuration (a Service Fabric or Serf cluster, Consul, a file) drives Envoys. A small difference in Envoy's
//! behaviour is published with a [warning](DIFFERS). A route or cluster that Envoy cannot implement is
//! [named](LEFT_OUT) and left out. A route whose criteria Envoy supports, but not its action, answers 503, so that
//! its requests get to no other route. So does a route behind an authorization policy, by its own name or by
//! `Fallback`, and a route with an error. If Envoy supports not even the criteria of a route behind a policy, all
//! paths below its first texts get 503.
//!
//! | in the model | in Envoy |
//! |---|---|
//! | precedence of routes over all hosts | each domain has all routes that take requests to it, in that order |
//! | path templates | prefixes, or expressions that do not check the sizes of integers |
//! | query parameters, methods | expressions over `:path` and `:method` |
//! | changes of the path, paths of addresses | one `regex_rewrite` |
//! | `Redirect`, with values of the path | `redirect`, with `regex_rewrite` |
//! | `Respond` without headers | `direct_response` |
//! | `Host` of the destination | `auto_host_rewrite` with `hostname` of the endpoint |
//! | `Timeout`, `ActivityTimeout` | `timeout`, `idle_timeout` |
//! | tiers | priorities, with so much overprovisioning that none is skipped before its last destination |
//! | destinations with host names | `STRICT_DNS` with its endpoints; else `EDS` |
//!
//! Envoys accept expressions of at most 100 instructions, which are about as many characters.
//!
//! Envoys are expected to normalize paths (`normalize_path`) and to know the client's address
//! (`use_remote_address`). Where the proxy responds with 405, Envoy responds with 404. A host that routes match only by
//! a wildcard is known on the ports of [`BridgeOptions::ports`] and on those that any route names.

mod action;
mod cluster;
mod criteria;
mod endpoints;
mod headers;
mod health;
mod hosts;
mod options;
mod path;
mod protocol;
mod provide;
mod re2;
mod re2_size;
mod reply;
mod report;
mod restriction;
mod rewrite;
mod route;
mod source;
#[cfg(test)]
mod tests;
mod tls;

use proxy_model::{Problems, Snapshot, pointer_to};

pub use self::options::BridgeOptions;
pub use self::provide::provide;
#[cfg(feature = "providers")]
pub(crate) use self::provide::{compiled, provide_below};
use self::report::Report;
pub use self::report::{DIFFERS, LEFT_OUT};
use crate::assemble::{Owner, ServiceResources};

/// The result of [`to_envoy`].
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Bridged {
    /// Each cluster with its endpoints, and each virtual host, as separate services.
    pub services: Vec<ServiceResources>,
    /// The routes and clusters that are [left out](LEFT_OUT) or that [differ](DIFFERS), by the pointers of
    /// the configuration.
    pub problems: Problems,
}

/// Returns the resources that make Envoys behave like a proxy with this configuration. `source` names the
/// origin of the configuration.
///
/// A cluster that cannot be expressed is left out, so that Envoy answers requests to it with 503.
#[must_use]
pub fn to_envoy(source: &str, snapshot: &Snapshot, options: &BridgeOptions) -> Bridged {
    let mut bridged = Bridged::default();
    for cluster in snapshot.clusters() {
        let name = cluster.id().as_str();
        let mut report = Report::new(pointer_to("/Clusters", name), &mut bridged.problems);
        match cluster::cluster(cluster, options, &mut report) {
            Ok((written, assignment)) => {
                let mut service =
                    ServiceResources::new(Owner::new(source, format!("cluster {name}")));
                service.clusters.push(written);
                service.assignments.extend(assignment);
                bridged.services.push(service);
            }
            Err(reason) => report.left_out(&reason),
        }
    }
    let routes: Vec<_> = (snapshot.routes().iter().enumerate())
        .map(|(position, route)| {
            let pointer = pointer_to("/Routes", route.id().as_str());
            let mut report = Report::new(pointer, &mut bridged.problems);
            route::route(position, route, snapshot, options, &mut report)
        })
        .collect();
    for host in hosts::virtual_hosts(snapshot.routes(), &routes, options) {
        let mut service = ServiceResources::new(Owner::new(source, format!("host {}", host.name)));
        service.virtual_hosts.push(host);
        bridged.services.push(service);
    }
    bridged
}
