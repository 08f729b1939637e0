//! RDS: the virtual host of a service.

use std::sync::Arc;
use std::time::Duration;

use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{
    Decorator, HeaderMatcher, Route, RouteAction, RouteMatch, VirtualHost, WeightedCluster,
};
use xds_types::pb::envoy::r#type::matcher::v3::regex_matcher::{EngineType, GoogleRe2};
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use xds_types::pb::envoy::r#type::matcher::v3::{RegexMatcher, StringMatcher};

use super::options::TranslateOptions;
use crate::assemble::re2_size;
use crate::proto::{duration, number, regex};

/// The header with which a client stays with the service itself.
const STICKY_HEADER: &str = "x-sticky-uid";

/// The values of that header that mean yes, as an expression. One matcher has room for one exact value
/// only, and this has to be one route. As an expression they take eight instructions of a hundred.
const STICKY_VALUES: &str = "1|[yY]es|[tT]rue";

/// The header that names a branch.
const BRANCH_HEADER: &str = "x-branch-name";

/// The settings of a virtual host.
pub(super) struct HostSettings<'s> {
    pub(super) name: &'s str,
    pub(super) domains: Vec<String>,
    /// The name of requests in traces.
    pub(super) operation: &'s str,
    pub(super) timeout: Duration,
}

/// The target of the requests with a branch's name.
pub(super) struct BranchTarget {
    /// The condition for requests to the branch.
    pub(super) header: HeaderMatcher,
    pub(super) cluster: Arc<str>,
    pub(super) operation: String,
}

/// Returns the virtual host of a service of the registry: routes to its branches, then the route for sticky
/// requests, which stay with the service itself, then all others by weight.
pub(super) fn registry_host(
    settings: HostSettings<'_>,
    branches: &[BranchTarget],
    weights: &[(Arc<str>, u32)],
    options: &TranslateOptions,
) -> VirtualHost {
    let mut routes = Vec::with_capacity(branches.len() + 2);
    for target in branches {
        let to = ClusterSpecifier::Cluster(target.cluster.to_string());
        let header = Some(target.header.clone());
        routes.push(route(header, to, settings.timeout, &target.operation));
    }
    let sticky = header(STICKY_HEADER, STICKY_VALUES, options);
    let to = ClusterSpecifier::Cluster(settings.name.to_owned());
    routes.push(route(
        Some(sticky),
        to,
        settings.timeout,
        settings.operation,
    ));
    routes.push(route(
        None,
        weighted(weights),
        settings.timeout,
        settings.operation,
    ));
    VirtualHost {
        name: settings.name.to_owned(),
        domains: settings.domains,
        routes,
        ..VirtualHost::default()
    }
}

/// Returns the virtual host of any other service, to which all requests go.
pub(super) fn plain_host(settings: HostSettings<'_>) -> VirtualHost {
    let to = weighted(&[(settings.name.into(), 100)]);
    VirtualHost {
        name: settings.name.to_owned(),
        domains: settings.domains,
        routes: vec![route(None, to, settings.timeout, settings.operation)],
        ..VirtualHost::default()
    }
}

fn route(
    header: Option<HeaderMatcher>,
    to: ClusterSpecifier,
    timeout: Duration,
    operation: &str,
) -> Route {
    let matcher = RouteMatch {
        path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
        headers: header.into_iter().collect(),
        ..RouteMatch::default()
    };
    let action = RouteAction {
        cluster_specifier: Some(to),
        timeout: Some(duration(timeout)),
        ..RouteAction::default()
    };
    Route {
        r#match: Some(matcher),
        decorator: Some(Decorator {
            operation: operation.to_owned(),
            ..Decorator::default()
        }),
        action: Some(Action::Route(action)),
        ..Route::default()
    }
}

fn weighted(weights: &[(Arc<str>, u32)]) -> ClusterSpecifier {
    let clusters = weights.iter().map(|(name, weight)| ClusterWeight {
        name: name.to_string(),
        weight: Some(number(*weight)),
        ..ClusterWeight::default()
    });
    ClusterSpecifier::WeightedClusters(WeightedCluster {
        clusters: clusters.collect(),
        ..WeightedCluster::default()
    })
}

/// Returns the condition for requests to a branch: its name, in any case. `None` if old Envoys would reject
/// its expression, and with it all other routes.
pub(super) fn branch_header(branch: &str, options: &TranslateOptions) -> Option<HeaderMatcher> {
    if options.legacy_regex {
        let pattern = format!("(?i){}", ::regex::escape(branch));
        return re2_size::fits(&pattern).then(|| header(BRANCH_HEADER, &pattern, options));
    }
    // No expression: there is nothing to escape, and names may have any length.
    let name = StringMatcher {
        match_pattern: Some(MatchPattern::Exact(branch.to_owned())),
        ignore_case: true,
    };
    Some(HeaderMatcher {
        name: BRANCH_HEADER.to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(name)),
        ..HeaderMatcher::default()
    })
}

#[allow(deprecated, reason = "Envoys before 1.26 know nothing else")]
fn header(name: &str, pattern: &str, options: &TranslateOptions) -> HeaderMatcher {
    let specifier = if options.legacy_regex {
        HeaderMatchSpecifier::SafeRegexMatch(RegexMatcher {
            engine_type: Some(EngineType::GoogleRe2(GoogleRe2::default())),
            ..regex(pattern)
        })
    } else {
        HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(MatchPattern::SafeRegex(regex(pattern))),
            ..StringMatcher::default()
        })
    };
    HeaderMatcher {
        name: name.to_owned(),
        header_match_specifier: Some(specifier),
        ..HeaderMatcher::default()
    }
}
