//! The dialect for registries without their own.

use proxy_model::config::{DestinationConfig, ProxyConfig};
use proxy_model::{ClusterId, Problem, RouteId, Severity, nearest, pointer_to};

use super::node::LabelNode;
use super::route::{RouteLabels, is_route_name, read_route};
use super::rules::LabelRules;
use super::tree::LabelTree;
use super::{LabelsParser, Parsed, read_cluster};
use crate::discovery::{Destinations, LabelledService, Labels};
use crate::text::without_root;

/// Labels with a prefix, whose names are those of the configuration.
///
/// One service becomes one cluster and any number of routes. Keys are compared ignoring ASCII case.
///
/// | label | is |
/// |---|---|
/// | `proxy.enable` | `true` to serve the service |
/// | `proxy.cluster.id` | id of the cluster. Default: the service's name |
/// | `proxy.cluster.loadBalancingPolicy` | text |
/// | `proxy.cluster.sessionAffinity.{enabled, policy, failurePolicy, affinityKeyName}` | boolean, texts |
/// | `proxy.cluster.sessionAffinity.cookie.{path, domain, securePolicy, sameSite}` | texts |
/// | `proxy.cluster.sessionAffinity.cookie.{httpOnly, isEssential, expiration, maxAge}` | booleans, times |
/// | `proxy.cluster.healthCheck.availableDestinationsPolicy` | text |
/// | `proxy.cluster.healthCheck.active.{enabled, interval, timeout, policy, path, query}` | boolean, times, texts |
/// | `proxy.cluster.healthCheck.passive.{enabled, policy, reactivationPeriod}` | boolean, text, time |
/// | `proxy.cluster.httpClient.{sslProtocols, dangerousAcceptAnyServerCertificate}` | list, boolean |
/// | `proxy.cluster.httpClient.{maxConnectionsPerServer, enableMultipleHttp2Connections}` | number, boolean |
/// | `proxy.cluster.httpClient.{requestHeaderEncoding, responseHeaderEncoding}` | texts |
/// | `proxy.cluster.httpClient.webProxy.{address, bypassOnLocal, useDefaultCredentials}` | text, booleans |
/// | `proxy.cluster.httpRequest.{activityTimeout, allowResponseBuffering}` | time, boolean |
/// | `proxy.cluster.httpRequest.{version, versionPolicy}` | names |
/// | `proxy.cluster.metadata.<key>` | text; the key may have dots |
/// | `proxy.destinations.{weight, priority, zone, host}` | numbers, texts: for every destination without its own |
/// | `proxy.destinations.metadata.<key>` | text: for every destination without its own |
/// | `proxy.routes.<name>.path` | route template |
/// | `proxy.routes.<name>.hosts`, `.methods` | lists |
/// | `proxy.routes.<name>.order`, `.maxRequestBodySize` | numbers |
/// | `proxy.routes.<name>.strictPaths` | boolean |
/// | `proxy.routes.<name>.headers.[n].{name, values, mode, isCaseSensitive}` | text, list, name, boolean |
/// | `proxy.routes.<name>.queryParameters.[n].{name, values, mode, isCaseSensitive}` | as for headers |
/// | `proxy.routes.<name>.clusterId` | another cluster than the service's own |
/// | `proxy.routes.<name>.weightedClusters.[n].{clusterId, weight}` | text, number |
/// | `proxy.routes.<name>.partitionedClusters.key.{header, queryParameter, routeValue}` | text: one of them |
/// | `proxy.routes.<name>.partitionedClusters.hash` | `None` or `Fnv1a64` |
/// | `proxy.routes.<name>.partitionedClusters.partitions.[n].{clusterId, lowKey, highKey, name}` | texts, numbers |
/// | `proxy.routes.<name>.redirect.{scheme, host, path, status}` | texts, number: a redirect instead of a cluster |
/// | `proxy.routes.<name>.respond.{status, body}` | number, text: a response instead of a cluster |
/// | `proxy.routes.<name>.respond.headers.<name>` | text |
/// | `proxy.routes.<name>.{authorizationPolicy, corsPolicy, rateLimiterPolicy}` | texts |
/// | `proxy.routes.<name>.{outputCachePolicy, timeoutPolicy}` | texts |
/// | `proxy.routes.<name>.timeout` | time |
/// | `proxy.routes.<name>.metadata.<key>` | text |
/// | `proxy.routes.<name>.transforms.[n].<key>` | text |
/// | `proxy.routes.<name>.filters`, `.layers` | lists |
///
/// Without `proxy.enable` a service is not served, unless the parser is configured otherwise. If it has other
/// labels of the prefix, that is a warning. `clusterId`, `weightedClusters`, `partitionedClusters`, `redirect`
/// and `respond` replace the service's own cluster.
///
/// Booleans are `true` or `false` in any case, times `00:00:10` or `10s`, lists separated by commas, and
/// numbers decimal. `[n]` may also follow its name without the dot; elements are taken in numeric order. An
/// empty value counts as unset. The route's id is the cluster's id, `:` and the name, which consists of
/// letters, digits, `_` and `-`.
///
/// A label with the prefix that is not in the table is a warning with the name that was probably intended. If
/// it may be meant to restrict a route (`authorisation`), the route responds with 503.
#[derive(Clone, Debug)]
pub struct KeyValueLabels {
    rules: LabelRules,
    enabled_by_default: bool,
}

impl KeyValueLabels {
    /// The prefix, unless another one is chosen.
    pub const DEFAULT_PREFIX: &'static str = "proxy.";

    /// Creates the dialect with the prefix `proxy.`, for services with the label `proxy.enable`.
    pub fn new() -> Self {
        Self::with_rules(LabelRules::new(Self::DEFAULT_PREFIX))
    }

    /// Creates the dialect with other rules for prefix and case.
    pub fn with_rules(rules: LabelRules) -> Self {
        Self {
            rules,
            enabled_by_default: false,
        }
    }

    /// Uses another prefix. It has to end with the dot: `acme.`.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.rules.prefix = prefix.into();
        self
    }

    /// Enables or disables services without an `enable` label. Default: disabled.
    #[must_use]
    pub fn with_enabled_by_default(mut self, enabled: bool) -> Self {
        self.enabled_by_default = enabled;
        self
    }

    /// Sets the severity of an unknown label. An error quarantines the service. Default: warning.
    #[must_use]
    pub fn with_unknown_labels(mut self, severity: Severity) -> Self {
        self.rules.unknown = severity;
        self
    }
}

impl KeyValueLabels {
    /// Returns a warning for a service that has labels of the dialect, but not the label that enables it.
    /// That label was probably misspelt or forgotten.
    fn forgotten(&self, labels: &Labels) -> Option<Problem> {
        let own = || {
            let keys = labels.keys();
            keys.filter_map(|key| Some((key, self.rules.strip_prefix(key)?)))
        };
        let misspelt = own().find(|(_, rest)| nearest(rest, ["enable"]).is_some());
        let (key, _) = misspelt.or_else(|| own().next())?;
        let enable = format!("{}enable", self.rules.prefix);
        let message = format!("the service is not served, since it has no label `{enable}`");
        let problem = Problem::warning(pointer_to("", key), "not_enabled", message);
        Some(problem.with_suggestion(match misspelt {
            Some(_) => format!("did you mean `{enable}`?"),
            None => format!("`{enable}` = `true` opts in"),
        }))
    }
}

impl Default for KeyValueLabels {
    fn default() -> Self {
        Self::new()
    }
}

impl LabelsParser for KeyValueLabels {
    fn parse(&self, service: &str, described: &LabelledService) -> Parsed {
        let tree = LabelTree::new(&described.labels, &self.rules);
        let root = tree.root();
        let written = root
            .raw("Enable")
            .is_some_and(|value| !value.trim().is_empty());
        let enabled = match root.boolean("Enable") {
            Some(enabled) => enabled,
            // The intention of a value that is not a boolean is unknown, so the rest is read and the
            // service rejected.
            None => written || self.enabled_by_default,
        };
        if !enabled {
            let absent = root.raw("Enable").is_none();
            let forgotten = absent.then(|| self.forgotten(&described.labels));
            return Parsed::not_enabled().with_problems(forgotten.flatten().into_iter().collect());
        }
        let fragment = read_service(&root, service, &described.destinations);
        Parsed::new(fragment).with_problems(tree.finish())
    }
}

fn read_service(root: &LabelNode<'_>, service: &str, destinations: &Destinations) -> ProxyConfig {
    let labels = root.child("Cluster");
    let cluster_id = ClusterId::new(labels.text("Id").unwrap_or_else(|| service.to_owned()));
    let mut cluster = read_cluster(&labels);
    cluster.destinations = destinations.clone();
    complete_destinations(&root.child("Destinations"), &mut cluster.destinations);

    let mut fragment = ProxyConfig::default();
    for (name, labels) in root.named("Routes") {
        let mut route = read_route(&labels, &RouteLabels::default());
        for host in route.r#match.hosts.iter_mut().flatten() {
            *host = without_root(host).into_owned();
        }
        if !is_route_name(name) {
            let message = "a route's name has ASCII letters, digits, `_` and `-` only";
            labels.report_here("invalid_route_name", message);
            continue;
        }
        let named = route.cluster_id.is_some()
            || route.weighted_clusters.is_some()
            || route.partitioned_clusters.is_some()
            || route.redirect.is_some()
            || route.respond.is_some();
        if !named {
            route.cluster_id = Some(cluster_id.clone());
        }
        let id = RouteId::new(format!("{cluster_id}:{name}"));
        if fragment.routes.insert(id, route).is_some() {
            let message = "another route has this name in another case";
            labels.report_here("duplicate_route_name", message);
        }
    }
    fragment.clusters.insert(cluster_id, cluster);
    fragment
}

/// Completes destinations with the default values for all of them.
fn complete_destinations(labels: &LabelNode<'_>, destinations: &mut Destinations) {
    let defaults = DestinationConfig {
        weight: labels.integer("Weight"),
        priority: labels.integer("Priority"),
        zone: labels.text("Zone"),
        host: labels.text("Host"),
        metadata: labels.map("Metadata"),
        ..Default::default()
    };
    for destination in destinations.values_mut() {
        destination.weight = destination.weight.or(defaults.weight);
        destination.priority = destination.priority.or(defaults.priority);
        if destination.zone.is_none() {
            destination.zone.clone_from(&defaults.zone);
        }
        if destination.host.is_none() {
            destination.host.clone_from(&defaults.host);
        }
        for (key, value) in defaults.metadata.iter().flatten() {
            let metadata = destination.metadata.get_or_insert_default();
            metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}
