//! The action of one route.

use std::time::Duration;

use proxy_model::TimeSpan;
use proxy_model::config::{RouteConfig, TransformConfig, WeightedCluster};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HostRewriteSpecifier,
};
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{Route, RouteAction};
use xds_types::pb::google::protobuf;

use super::access::{self, Place, fields_close};
use super::headers::{self, Changes, Side};
use super::{Reading, matching, reply};

/// Envoy's time limit for a route without one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

fn transform(key: &str, value: &str) -> TransformConfig {
    TransformConfig::from_iter([(key.to_owned(), value.to_owned())])
}

/// Reads a route except hosts and order, and returns it with the number of rejected conditions.
pub(super) fn route(route: &Route, reading: &mut Reading) -> (RouteConfig, usize) {
    access::per_filter(&route.typed_per_filter_config, reading);
    fields_close(Place::Route, &access::route(route), reading);
    let Some(wanted) = &route.r#match else {
        reading.reject("match", "the route matches nothing");
        return (RouteConfig::default(), 0);
    };
    // Those who may not send must not be served by what the virtual host was before.
    reading.below("match", |reading| {
        reading.reject_if(wanted.tls_context.is_some(), "tls_context");
        reading.reject_if(!wanted.dynamic_metadata.is_empty(), "dynamic_metadata");
        reading.reject_if(!wanted.filter_state.is_empty(), "filter_state");
    });
    let before = reading.rejections();
    let mut config = RouteConfig {
        r#match: reading.below("match", |reading| matching::route_match(wanted, reading)),
        ..RouteConfig::default()
    };
    let conditions = reading.rejections() - before;
    match &route.action {
        Some(Action::Route(action)) => reading.below("route", |reading| {
            forward(action, wanted.path_specifier.as_ref(), &mut config, reading);
        }),
        // A route without a cluster answers like this.
        Some(Action::DirectResponse(answer)) if answer.status == 503 && answer.body.is_none() => {}
        Some(Action::DirectResponse(answer)) => {
            let respond =
                reading.below("direct_response", |reading| reply::respond(answer, reading));
            config.respond = Some(Box::new(respond));
        }
        Some(Action::Redirect(action)) => {
            let path = wanted.path_specifier.as_ref();
            let redirect =
                reading.below("redirect", |reading| reply::redirect(action, path, reading));
            config.redirect = Some(Box::new(redirect));
        }
        _ => reading.reject(
            "action",
            "only forwarding, redirects and direct responses can be honoured",
        ),
    }
    let out = config.transforms.get_or_insert_default();
    let request = Changes {
        add: &route.request_headers_to_add,
        remove: &route.request_headers_to_remove,
    };
    if !headers::is_reply(route.action.as_ref()) {
        headers::transforms(request, Side::Request, out, reading);
    }
    let response = Changes {
        add: &route.response_headers_to_add,
        remove: &route.response_headers_to_remove,
    };
    headers::transforms(response, Side::Response, out, reading);
    (config, conditions)
}

fn forward(
    action: &RouteAction,
    path: Option<&PathSpecifier>,
    config: &mut RouteConfig,
    reading: &mut Reading,
) {
    match &action.cluster_specifier {
        Some(ClusterSpecifier::Cluster(name)) => config.cluster_id = Some(name.as_str().into()),
        Some(ClusterSpecifier::WeightedClusters(weighted)) => {
            config.weighted_clusters = Some(
                weighted
                    .clusters
                    .iter()
                    .map(|share| self::share(share, reading))
                    .collect(),
            );
        }
        _ => reading.reject(
            "cluster_specifier",
            "only names of clusters can be honoured",
        ),
    }
    fields_close(Place::RouteAction, &access::route_action(action), reading);
    let timeout = match &action.timeout {
        None => DEFAULT_TIMEOUT,
        Some(timeout) => duration(timeout),
    };
    if !timeout.is_zero() {
        config.timeout = Some(TimeSpan::new(timeout));
        reading.differs(
            "timeout",
            "it ends with the head of the response, not with its last byte",
        );
    }
    let transforms = config.transforms.get_or_insert_default();
    // Envoy appends the client's address and sets the scheme, and nothing more.
    transforms.push(TransformConfig::from_iter(
        [("X-Forwarded", "Off"), ("For", "Append"), ("Proto", "Set")]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
    ));
    if !action.prefix_rewrite.is_empty() {
        match prefix_rewrite(path, &action.prefix_rewrite) {
            Some(changes) => transforms.extend(changes),
            None => reading.reject(
                "prefix_rewrite",
                "only a prefix of whole segments can be replaced",
            ),
        }
    }
    match &action.host_rewrite_specifier {
        Some(HostRewriteSpecifier::HostRewriteLiteral(host)) => {
            let mut change = transform("RequestHeader", "Host");
            change.insert("Set".to_owned(), host.clone());
            transforms.push(change);
        }
        Some(HostRewriteSpecifier::AutoHostRewrite(auto)) if auto.value => {
            reading.differs(
                "auto_host_rewrite",
                "destinations without a host name get their address as `Host`, where Envoy keeps the client's",
            );
        }
        None | Some(HostRewriteSpecifier::AutoHostRewrite(_)) => {
            transforms.push(transform("RequestHeaderOriginalHost", "true"));
        }
        Some(_) => reading.reject("host_rewrite_specifier", "only fixed hosts can be honoured"),
    }
}

fn share(share: &ClusterWeight, reading: &mut Reading) -> WeightedCluster {
    let has_changes = !share.request_headers_to_add.is_empty()
        || !share.request_headers_to_remove.is_empty()
        || !share.response_headers_to_add.is_empty()
        || !share.response_headers_to_remove.is_empty();
    reading.reject_if(has_changes, "weighted_clusters/headers");
    reading.reject_if(
        !share.cluster_header.is_empty(),
        "weighted_clusters/cluster_header",
    );
    reading.reject_if(
        share.metadata_match.is_some(),
        "weighted_clusters/metadata_match",
    );
    reading.below("weighted_clusters", |reading| {
        access::per_filter(&share.typed_per_filter_config, reading);
    });
    reading.reject_if(
        share.host_rewrite_specifier.is_some(),
        "weighted_clusters/host_rewrite_specifier",
    );
    WeightedCluster {
        cluster_id: share.name.as_str().into(),
        weight: share.weight.as_ref().map_or(0, |weight| weight.value),
    }
}

/// The prefix that was matched is replaced.
fn prefix_rewrite(path: Option<&PathSpecifier>, by: &str) -> Option<Vec<TransformConfig>> {
    let by = by.strip_suffix('/').unwrap_or(by);
    let mut changes = Vec::new();
    match path? {
        PathSpecifier::Prefix(prefix) if prefix.ends_with('/') => {
            changes.extend(removed(prefix));
        }
        PathSpecifier::PathSeparatedPrefix(prefix) => changes.extend(removed(prefix)),
        PathSpecifier::Path(_) => {
            return Some(vec![transform(
                "PathSet",
                if by.is_empty() { "/" } else { by },
            )]);
        }
        _ => return None,
    }
    if !by.is_empty() {
        changes.push(transform("PathPrefix", by));
    }
    Some(changes)
}

fn removed(prefix: &str) -> Option<TransformConfig> {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    (!prefix.is_empty()).then(|| transform("PathRemovePrefix", prefix))
}

/// Returns the duration, or zero for a negative one.
pub(super) fn duration(duration: &protobuf::Duration) -> Duration {
    let seconds = u64::try_from(duration.seconds).unwrap_or_default();
    let nanos = u32::try_from(duration.nanos).unwrap_or_default();
    Duration::new(seconds.min(u64::from(u32::MAX)), nanos.min(999_999_999))
}
