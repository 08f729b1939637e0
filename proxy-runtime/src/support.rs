//! Configuration keys that are valid and have no effect.

use proxy_model::compiled::{Cluster, Destination, Route, Scheme};
use proxy_model::config::{HttpVersion, PolicyKind, VersionPolicy};
use proxy_model::{Problem, Problems, Snapshot, pointer_to, same_id};

/// Code of a setting that this version, or this build, does not support.
const UNSUPPORTED: &str = "unsupported";

/// Code of a setting for a part of Windows or .NET that has no counterpart here.
const NOT_APPLICABLE: &str = "not_applicable";

/// Returns a warning for each setting of `snapshot` that has no effect in this version. Its code is `unsupported`, or
/// `not_applicable` if the setting is for a part of Windows or .NET that has no counterpart here.
///
/// The rest of the configuration is used, with one exception: a route with an `AuthorizationPolicy` returns 500,
/// because serving it would open what was meant to be closed.
///
/// Pointers begin at the section that holds `Routes` and `Clusters`.
///
/// [`Proxy::unsupported`](crate::Proxy::unsupported) also considers whether the proxy has TLS settings for
/// destinations.
pub fn unsupported(snapshot: &Snapshot) -> Problems {
    // Only a program that honours policies reads any.
    unsupported_by(snapshot, cfg!(feature = "tls"), true)
}

/// Returns the warnings for a proxy that can reach `https` destinations if `speaks_tls`, and has a source of
/// policies if `has_policies`.
pub(crate) fn unsupported_by(
    snapshot: &Snapshot,
    speaks_tls: bool,
    has_policies: bool,
) -> Problems {
    let mut problems = Problems::new();
    for route in snapshot.routes() {
        check_route(route, has_policies, &mut problems);
    }
    for cluster in snapshot.clusters() {
        check_cluster(cluster, &mut problems);
        // A connector of the program speaks what it must.
        if !speaks_tls && cluster.upstream().connector().is_none() {
            check_schemes(cluster, &mut problems);
        }
    }
    problems
}

/// The reason why a route gets no requests through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum RouteRejection {
    /// The route has an `AuthorizationPolicy`, which this version cannot enforce. To serve it would open what was meant
    /// to be closed.
    Authorization,
}

impl std::fmt::Display for RouteRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Authorization => "its AuthorizationPolicy cannot be enforced",
        })
    }
}

/// Returns why requests of `route` cannot be served, if they cannot. `has_policies`: a source has created the
/// policies that the route's configuration names.
pub(crate) fn rejection(route: &Route, has_policies: bool) -> Option<RouteRejection> {
    is_open(route, PolicyKind::Authorization, has_policies).then_some(RouteRejection::Authorization)
}

/// Returns true if the route has a policy of a kind that is not honoured.
fn is_open(route: &Route, kind: PolicyKind, has_policies: bool) -> bool {
    let mut policies = route.policies().iter();
    policies.any(|policy| policy.kind() == kind && !(policy.is_defined() && has_policies))
}

/// Returns true if a policy is named, other than one of `without_effect`.
fn is_asked(policy: Option<&String>, without_effect: &[&str]) -> bool {
    policy.is_some_and(|name| {
        !name.is_empty() && !without_effect.iter().any(|nothing| same_id(name, nothing))
    })
}

fn check_route(route: &Route, has_policies: bool, problems: &mut Problems) {
    let pointer = pointer_to("/Routes", route.id().as_str());
    let config = route.config();
    let mut warn = |below: &str, message: &str| {
        problems.push(Problem::warning(
            format!("{pointer}/{below}"),
            UNSUPPORTED,
            message,
        ));
    };
    if rejection(route, has_policies).is_some() {
        warn(
            "AuthorizationPolicy",
            "nothing enforces the authorization policy; so that nothing is served that should not be, all requests of this \
             route are answered with 500",
        );
    }
    // `Disable` is the name for no policy.
    let names_cors = is_asked(config.cors_policy.as_ref(), &["Disable"]);
    let has_cors = route
        .policies()
        .iter()
        .any(|policy| policy.kind() == PolicyKind::Cors && policy.is_defined() && has_policies);
    if names_cors && !has_cors {
        warn(
            "CorsPolicy",
            "nothing defines the CORS policy; no CORS headers are added",
        );
    }
    if is_open(route, PolicyKind::RateLimiter, has_policies) {
        warn(
            "RateLimiterPolicy",
            "nothing enforces the rate limiter policy; requests are not limited",
        );
    }
    if is_asked(config.output_cache_policy.as_ref(), &[]) {
        warn(
            "OutputCachePolicy",
            "nothing caches responses here; every request is forwarded. Use a cache in front",
        );
    }
    if is_asked(config.timeout_policy.as_ref(), &["Disable"]) && route.timeout().is_none() {
        warn(
            "TimeoutPolicy",
            "nothing enforces the timeout policy; requests have no timeout but the cluster's activity timeout. Use \
             `Timeout`",
        );
    }
}

fn check_cluster(cluster: &Cluster, problems: &mut Problems) {
    let pointer = pointer_to("/Clusters", cluster.id().as_str());
    let config = cluster.config();
    let mut add = |below: &str, code: &'static str, message: &str| {
        problems.push(Problem::warning(
            format!("{pointer}/{below}"),
            code,
            message,
        ));
    };
    #[cfg(not(feature = "affinity-keys"))]
    if cluster
        .affinity()
        .is_some_and(|affinity| affinity.key().is_sealed())
    {
        add(
            "SessionAffinity/Policy",
            UNSUPPORTED,
            "this build encrypts no affinity keys; requests of one client go to any destination. Build with the feature \
             `affinity-keys`, or use `HashCookie`",
        );
    }
    let web_proxy = config
        .http_client
        .as_ref()
        .and_then(|client| client.web_proxy.as_ref());
    if web_proxy.is_some_and(|proxy| proxy.use_default_credentials == Some(true)) {
        add(
            "HttpClient/WebProxy/UseDefaultCredentials",
            NOT_APPLICABLE,
            "there are no credentials of the account of the process; write user and password into `Address` if the \
             forward proxy wants them",
        );
    }
    for (id, destination) in &config.destinations {
        let mut metadata = destination.metadata.iter().flatten();
        if let Some((name, _)) = metadata.find(|(name, _)| same_id(name, "HttpSysDelegationQueue"))
        {
            let below = pointer_to(&pointer_to("Destinations", id.as_str()), "Metadata");
            add(
                &pointer_to(&below, name),
                NOT_APPLICABLE,
                "requests are not handed over to queues of HTTP.sys; they are forwarded",
            );
        }
    }
    let upstream = cluster.upstream();
    if upstream.version() == HttpVersion::Http3 {
        add(
            "HttpRequest/Version",
            UNSUPPORTED,
            match upstream.version_policy() {
                VersionPolicy::RequestVersionOrLower => {
                    "HTTP/3 is not supported yet; HTTP/2 or HTTP/1.1 is spoken"
                }
                VersionPolicy::RequestVersionOrHigher | VersionPolicy::RequestVersionExact => {
                    "HTTP/3 is not supported yet and the version policy forbids lower ones; all requests are answered \
                     with 502"
                }
            },
        );
    }
    #[cfg(not(feature = "http2"))]
    if upstream.version() == HttpVersion::Http2
        && upstream.version_policy() != VersionPolicy::RequestVersionOrLower
    {
        add(
            "HttpRequest/Version",
            UNSUPPORTED,
            "this build does not speak HTTP/2 and the version policy forbids lower versions; all requests are answered \
             with 502",
        );
    }
}

/// Reports the first `https` destination of a cluster, for all of them.
fn check_schemes(cluster: &Cluster, problems: &mut Problems) {
    let is_https = |destination: &&Destination| destination.address().scheme() == Scheme::Https;
    let https: Vec<_> = cluster.destinations().iter().filter(is_https).collect();
    let Some(first) = https.first() else { return };
    let destinations = pointer_to("/Clusters", cluster.id().as_str()) + "/Destinations";
    let message = format!(
        "this proxy has no TLS for destinations; requests to the {} `https` ones of the cluster are answered with 502",
        https.len()
    );
    problems.push(
        Problem::warning(
            pointer_to(&destinations, first.id().as_str()) + "/Address",
            UNSUPPORTED,
            message,
        )
        .with_suggestion("build with the feature `tls` and give `UpstreamOptions` a `TlsClient`"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::config;

    /// Codes and pointers of what is reported for a configuration.
    fn reported(json: &str) -> Vec<(String, String)> {
        let options = proxy_model::CompileOptions::default()
            .with_timeout_policies(["slow"])
            .with_output_cache_policies(["all"])
            .with_rate_limiter_policies(["few"]);
        let (snapshot, _) = Snapshot::compile(config(json), &options).unwrap();
        let problems = unsupported(&snapshot);
        assert!(!problems.has_errors());
        let of = |problem: &Problem| (problem.code.to_string(), problem.pointer.clone());
        problems.iter().map(of).collect()
    }

    #[test]
    fn everything_that_is_not_honoured_is_named() {
        let found = reported(
            r#"{"Routes":{"a/b":{"ClusterId":"c","Match":{"Path":"/"},
                    "AuthorizationPolicy":"default","CorsPolicy":"Default","RateLimiterPolicy":"few",
                    "OutputCachePolicy":"all","TimeoutPolicy":"slow",
                    "Transforms":[{"PathPrefix":"/x"}]}},
                "Clusters":{"c":{
                    "HttpClient":{"WebProxy":{"Address":"http://proxy:3128/","UseDefaultCredentials":true}},
                    "Destinations":{"d":{"Address":"http://h/","Metadata":{"httpSysDelegationQueue":"q"}}},
                    "HttpRequest":{"Version":"3","VersionPolicy":"RequestVersionExact"}}}}"#,
        );
        assert_eq!(
            found
                .iter()
                .map(|(code, pointer)| (&**code, &**pointer))
                .collect::<Vec<_>>(),
            [
                ("unsupported", "/Routes/a~1b/AuthorizationPolicy"),
                ("unsupported", "/Routes/a~1b/CorsPolicy"),
                ("unsupported", "/Routes/a~1b/RateLimiterPolicy"),
                ("unsupported", "/Routes/a~1b/OutputCachePolicy"),
                ("unsupported", "/Routes/a~1b/TimeoutPolicy"),
                (
                    "not_applicable",
                    "/Clusters/c/HttpClient/WebProxy/UseDefaultCredentials"
                ),
                (
                    "not_applicable",
                    "/Clusters/c/Destinations/d/Metadata/httpSysDelegationQueue"
                ),
                ("unsupported", "/Clusters/c/HttpRequest/Version"),
            ]
        );
    }

    #[test]
    fn without_tls_https_destinations_are_reported_once_per_cluster() {
        let config = config(
            r#"{"Clusters":{"a":{"Destinations":{
                    "1":{"Address":"http://h1/"},"2":{"Address":"https://h2/"},"3":{"Address":"https://h3/"}}},
                "b":{"Destinations":{"1":{"Address":"http://h1/"}}}}}"#,
        );
        let snapshot = crate::fixtures::compiled(config);
        let problems = unsupported_by(&snapshot, false, true);
        let pointers: Vec<_> = problems.iter().map(|p| &*p.pointer).collect();
        assert_eq!(pointers, ["/Clusters/a/Destinations/2/Address"]);
        assert!(
            problems.to_string().contains("the 2 `https` ones"),
            "{problems}"
        );
        assert!(unsupported_by(&snapshot, true, true).is_empty());
    }

    #[test]
    fn what_asks_for_nothing_is_no_problem() {
        let found = reported(
            r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/"},
                    "AuthorizationPolicy":"Anonymous","CorsPolicy":"disable","RateLimiterPolicy":"Default",
                    "TimeoutPolicy":"Disable","Transforms":[{"PathPrefix":"/x"}]}},
                "Clusters":{"c":{
                    "SessionAffinity":{"Enabled":true,"AffinityKeyName":"k"},
                    "HealthCheck":{"Active":{"Enabled":true},"Passive":{"Enabled":true}},
                    "HttpClient":{"MaxConnectionsPerServer":3},
                    "HttpRequest":{"Version":"2"}}}}"#,
        );
        assert!(found.is_empty(), "{found:?}");
    }
}
