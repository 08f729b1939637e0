//! The limits and retries that apply to a request.

use http::Method as HttpMethod;
use proxy_model::compiled::{Cluster, Route};

use crate::http1::Method;
use crate::retry::MOST_ATTEMPTS;
use crate::transform::sent_method;

/// Returns the rules of a route and its cluster for a request with this method, one a line.
pub(super) fn rules(
    route: &Route,
    cluster: &Cluster,
    method: &HttpMethod,
    body_limit: Option<u64>,
) -> Vec<String> {
    let upstream = cluster.upstream();
    let mut rules = Vec::new();
    if let Some(timeout) = route.timeout() {
        rules.push(format!("Timeout: the response begins within {timeout:?}"));
    }
    let activity = upstream.activity_timeout();
    rules.push(format!(
        "ActivityTimeout: the exchange is ended after {activity:?} without a byte in either direction"
    ));
    if let Some(limit) = body_limit {
        rules.push(format!("MaxRequestBodySize: {limit} bytes"));
    }
    if let Some(most) = upstream.max_connections() {
        rules.push(format!(
            "MaxConnectionsPerServer: {most} connections to each destination, other requests wait"
        ));
    }
    if let Some(check) = cluster.passive_check() {
        rules.push(format!(
            "passive check {}: a destination that fails is left out for a time",
            check.policy()
        ));
    }
    // The destination gets this method, which decides about retries.
    let sent = sent_method(route, method.as_str());
    let method = sent.unwrap_or(method);
    rules.push(match Method::of(method).is_idempotent() {
        true => format!(
            "retries: at most {MOST_ATTEMPTS} attempts, also if the connection closes without a response ({method} is idempotent)"
        ),
        false => format!(
            "retries: at most {MOST_ATTEMPTS} attempts, while nothing of the request was sent ({method} is not idempotent)"
        ),
    });
    rules
}
