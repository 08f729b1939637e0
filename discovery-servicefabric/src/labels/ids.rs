//! The ids of the routes, clusters and destinations of a service.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use proxy_model::{ClusterId, DestinationId, RouteId};

/// The characters that .NET's `Uri.EscapeDataString` encodes: all but the unreserved characters of RFC 3986
/// section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// `fabric%3A%2FShop%2FWeb:main`
pub(super) fn route_id(cluster: &ClusterId, route: &str) -> RouteId {
    RouteId::from(format!("{}:{}", escaped(cluster.as_str()), escaped(route)))
}

/// A route's id with something after it.
pub(super) fn longer_route_id(route: &RouteId, suffix: &str) -> RouteId {
    RouteId::from(format!("{route}:{}", escaped(suffix)))
}

/// The id of the part of a cluster that is for one partition, one listener or one use: `fabric:/Shop/Web/grpc`.
pub(super) fn part_id(
    cluster: &ClusterId,
    partition: Option<&str>,
    listener: Option<&str>,
    r#use: Option<&str>,
) -> ClusterId {
    let mut id = cluster.as_str().to_owned();
    for part in [partition, listener, r#use].into_iter().flatten() {
        id.push('/');
        id.extend(utf8_percent_encode(part, RESERVED));
    }
    ClusterId::from(id)
}

/// `<partition id>/<replica id>`: replicas have ids of their own in their partition only.
pub(super) fn destination_id(partition: &str, replica: i64) -> DestinationId {
    DestinationId::from(format!("{}{replica}", partition_prefix(partition)))
}

/// The prefix of the ids of a partition's destinations.
pub(crate) fn partition_prefix(partition: &str) -> String {
    format!("{partition}/")
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
