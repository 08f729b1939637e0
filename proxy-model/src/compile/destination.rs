//! Destinations.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderValue;

use super::{Scope, address, filled, health, metadata};
use crate::compiled::{Destination, DestinationAddress, DestinationSource};
use crate::problem::Problem;

/// The largest `Weight` of a destination or of a route's cluster, so that sums and products of weights stay small.
pub const MAX_WEIGHT: u32 = 1_000_000;

/// The largest `Priority` of a destination. Envoy's limit as well.
pub const MAX_PRIORITY: u32 = 127;

pub(super) fn compile(source: DestinationSource, scope: &mut Scope<'_>) -> Option<Destination> {
    let config = source.config();
    if source.id().as_str().is_empty() {
        scope.problems.push(Problem::error(
            scope.pointer().to_owned(),
            "missing_destination_id",
            "the destination's id is empty",
        ));
    }
    let address = match config.address.as_str() {
        "" => {
            scope.error_with(
                "Address",
                "missing_address",
                "the destination has no address",
                "add `\"Address\": \"http://host:port/\"`",
            );
            None
        }
        text => address::parse(text, "Address", scope),
    };
    let health_address = match filled(config.health.as_ref()) {
        Some(text) => address::parse(text, "Health", scope).map(Some),
        None => Some(None),
    };
    // As `Health`, it is checked whether or not probes are on.
    let health_path = match filled(config.health_path.as_ref()) {
        Some(path) => health::probe_path(path, "HealthPath", scope).map(Some),
        None => Some(None),
    };
    let host = match filled(config.host.as_ref()) {
        Some(text) => address::host_header(text, "Host", scope).map(Some),
        None => Some(None),
    };
    metadata::check(config.metadata.as_ref(), scope);
    let weight = within(config.weight.unwrap_or(1), MAX_WEIGHT, "Weight", scope);
    let priority = within(
        config.priority.unwrap_or(0),
        MAX_PRIORITY,
        "Priority",
        scope,
    );
    let host = host?;
    let name = host.as_ref().and_then(name_in);
    Some(Destination {
        address: Arc::new(named(address?, name)),
        health: health_address?.map(|health| Arc::new(named(health, name))),
        health_path: health_path?.map(String::into_boxed_str),
        host,
        weight: weight?,
        priority: priority?,
        source,
    })
}

/// The name in a `Host` header, without its port, unless it is an IP address.
fn name_in(host: &HeaderValue) -> Option<&str> {
    let host = host.to_str().ok()?;
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    (!host.starts_with('[') && name.parse::<IpAddr>().is_err()).then_some(name)
}

/// `address`, called `name` in TLS if it has no name itself.
fn named(mut address: DestinationAddress, name: Option<&str>) -> DestinationAddress {
    if let Some(name) = name
        && address.host.parse::<IpAddr>().is_ok()
    {
        address.server_name = name.into();
    }
    address
}

/// Warns of a cluster whose weights are all 0. They would exclude every destination, so they are ignored.
pub(super) fn check_weights(destinations: &[Destination], scope: &mut Scope<'_>) {
    if !destinations.is_empty() && destinations.iter().all(|d| d.weight() == 0) {
        scope.warning(
            "Destinations",
            "no_weight",
            "every destination has the weight 0, so weights do not count: all get the same share",
        );
    }
}

/// `number`, unless it is larger than `most`.
pub(super) fn within(number: u32, most: u32, key: &str, scope: &mut Scope<'_>) -> Option<u32> {
    if number > most {
        let message = format!("{number} is larger than {most}");
        scope.error(key, "out_of_range", message);
        return None;
    }
    Some(number)
}
