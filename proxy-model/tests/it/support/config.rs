//! Any configuration that the types can hold, right or wrong.

use std::path::PathBuf;

use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proxy_model::config::*;
use proxy_model::{ClusterId, DestinationId, RouteId, TimeSpan};

/// Any configuration whose ids and keys are unique ignoring case, which JSON cannot hold otherwise.
pub(crate) fn any_config() -> impl Strategy<Value = ProxyConfig> {
    let routes = vec((id(), route()), 0..5);
    let clusters = vec((id(), cluster()), 0..5);
    (routes, clusters).prop_map(|(routes, clusters)| ProxyConfig {
        routes: routes
            .into_iter()
            .map(|(id, r)| (RouteId::from(id), r))
            .collect(),
        clusters: clusters
            .into_iter()
            .map(|(id, c)| (ClusterId::from(id), c))
            .collect(),
        ..ProxyConfig::default()
    })
}

/// Ids that are often equal, sometimes only ignoring case.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-dA-D]", 1 => any::<String>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => prop::sample::select(&[
            "", "/", "/a/{b}", "/{**rest}", "a.com", "GET", "Random", "http://a/", "x: y", "Default", "?q", "10", "true",
        ][..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn texts() -> impl Strategy<Value = Option<Vec<String>>> {
    option::of(vec(text(), 0..3))
}

fn map() -> impl Strategy<Value = IndexMap<String, String>> {
    // Small letters only, so that no two keys differ in case.
    vec(("[a-z~/ ü]{0,3}", text()), 0..3).prop_map(|entries| entries.into_iter().collect())
}

fn span() -> impl Strategy<Value = Option<TimeSpan>> {
    option::of(any::<std::time::Duration>().prop_map(TimeSpan::new))
}

fn route() -> impl Strategy<Value = RouteConfig> {
    let weighted = (id(), any::<u32>()).prop_map(|(id, weight)| WeightedCluster {
        cluster_id: id.into(),
        weight,
    });
    let policies = (
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(text()),
    );
    let targets = (
        option::of(id()),
        option::of(vec(weighted, 0..3)),
        option::of(partitioned_clusters()),
    );
    let numbers = (any::<Option<i32>>(), any::<Option<i64>>(), span());
    let names = || option::of(vec(text(), 0..3));
    let rest = (
        option::of(map()),
        option::of(vec(map(), 0..3)),
        names(),
        names(),
        any::<Option<bool>>(),
        any::<Option<bool>>(),
    );
    (targets, criteria(), numbers, policies, rest).prop_map(
        |(
            targets,
            criteria,
            numbers,
            policies,
            (metadata, transforms, filters, layers, strict_paths, timeout_includes_body),
        )| {
            let (cluster, weighted_clusters, partitioned_clusters) = targets;
            RouteConfig {
                redirect: None,
                respond: None,
                cluster_id: cluster.map(ClusterId::from),
                weighted_clusters,
                partitioned_clusters,
                r#match: criteria,
                order: numbers.0,
                max_request_body_size: numbers.1,
                strict_paths,
                timeout: numbers.2,
                timeout_includes_body,
                authorization_policy: policies.0,
                cors_policy: policies.1,
                rate_limiter_policy: policies.2,
                output_cache_policy: policies.3,
                timeout_policy: policies.4,
                metadata,
                transforms,
                filters,
                layers,
            }
        },
    )
}

fn partitioned_clusters() -> impl Strategy<Value = PartitionedClusters> {
    let key = (option::of(text()), option::of(text()), option::of(text()));
    let hash = prop::sample::select(&[PartitionHash::None, PartitionHash::Fnv1a64][..]);
    let range = (any::<Option<i64>>(), any::<Option<i64>>());
    let partition =
        (id(), range, option::of(text())).prop_map(|(id, (low, high), name)| PartitionedCluster {
            cluster_id: id.into(),
            low_key: low,
            high_key: high,
            name,
        });
    (key, hash, vec(partition, 0..4)).prop_map(|(key, hash, partitions)| PartitionedClusters {
        key: PartitionKey {
            header: key.0,
            query_parameter: key.1,
            route_value: key.2,
        },
        hash,
        partitions,
    })
}

fn criteria() -> impl Strategy<Value = RouteMatch> {
    use HeaderMatchMode as H;
    use QueryMatchMode as Q;
    let headers = [
        H::ExactHeader,
        H::HeaderPrefix,
        H::Exists,
        H::Contains,
        H::NotContains,
        H::NotExists,
    ];
    let queries = [Q::Exact, Q::Contains, Q::NotContains, Q::Prefix, Q::Exists];
    let header = (
        text(),
        texts(),
        prop::sample::select(headers.to_vec()),
        any::<bool>(),
    );
    let header = header.prop_map(|(name, values, mode, is_case_sensitive)| RouteHeader {
        name,
        values,
        mode,
        is_case_sensitive,
    });
    let query = (
        text(),
        texts(),
        prop::sample::select(queries.to_vec()),
        any::<bool>(),
    );
    let query = query.prop_map(
        |(name, values, mode, is_case_sensitive)| RouteQueryParameter {
            name,
            values,
            mode,
            is_case_sensitive,
        },
    );
    let lists = (option::of(vec(header, 0..3)), option::of(vec(query, 0..3)));
    (option::of(text()), texts(), texts(), lists).prop_map(
        |(path, hosts, methods, (headers, query_parameters))| RouteMatch {
            path,
            hosts,
            methods,
            headers,
            query_parameters,
        },
    )
}

fn cluster() -> impl Strategy<Value = ClusterConfig> {
    let destinations = vec((id(), destination()), 0..4);
    (
        option::of(text()),
        option::of(affinity()),
        option::of(health()),
        option::of(client()),
        option::of(request()),
        destinations,
        option::of(map()),
    )
        .prop_map(
            |(policy, affinity, health, client, request, destinations, metadata)| {
                let destinations = destinations.into_iter();
                ClusterConfig {
                    load_balancing_policy: policy,
                    session_affinity: affinity.map(Box::new),
                    health_check: health.map(Box::new),
                    http_client: client.map(Box::new),
                    http_request: request,
                    destinations: destinations
                        .map(|(id, d)| (DestinationId::from(id), d))
                        .collect(),
                    metadata,
                }
            },
        )
}

fn destination() -> impl Strategy<Value = DestinationConfig> {
    (
        text(),
        option::of(text()),
        option::of(text()),
        option::of(text()),
        any::<Option<u32>>(),
        any::<Option<u32>>(),
        option::of(text()),
        option::of(map()),
    )
        .prop_map(
            |(address, health, health_path, host, weight, priority, zone, metadata)| {
                DestinationConfig {
                    address,
                    health,
                    health_path,
                    host,
                    weight,
                    priority,
                    zone,
                    metadata,
                }
            },
        )
}

fn affinity() -> impl Strategy<Value = SessionAffinityConfig> {
    let cookie = (
        (
            option::of(text()),
            option::of(text()),
            any::<Option<bool>>(),
            option::of(text()),
        ),
        (option::of(text()), span(), span(), any::<Option<bool>>()),
    );
    let cookie = cookie.prop_map(|(first, second)| AffinityCookieConfig {
        path: first.0,
        domain: first.1,
        http_only: first.2,
        secure_policy: first.3,
        same_site: second.0,
        expiration: second.1,
        max_age: second.2,
        is_essential: second.3,
    });
    let names = (option::of(text()), option::of(text()), option::of(text()));
    let affinity = (any::<Option<bool>>(), names, span(), option::of(cookie));
    affinity.prop_map(
        |(enabled, names, drain_timeout, cookie)| SessionAffinityConfig {
            enabled,
            policy: names.0,
            failure_policy: names.1,
            affinity_key_name: names.2,
            drain_timeout,
            cookie,
        },
    )
}

fn health() -> impl Strategy<Value = HealthCheckConfig> {
    let active = (
        (any::<Option<bool>>(), span(), span()),
        (option::of(text()), option::of(text()), option::of(text())),
        (
            option::of(1..u32::MAX),
            span(),
            option::of(text()),
            option::of(text()),
        ),
    );
    let active = active.prop_map(
        |((enabled, interval, timeout), (policy, path, query), added)| ActiveHealthCheckConfig {
            enabled,
            interval,
            timeout,
            policy,
            rise: added.0,
            fast_interval: added.1,
            probe: added.2,
            grpc_service: added.3,
            path,
            query,
        },
    );
    let passive = (any::<Option<bool>>(), option::of(text()), span());
    let passive =
        passive.prop_map(
            |(enabled, policy, reactivation_period)| PassiveHealthCheckConfig {
                enabled,
                policy,
                reactivation_period,
            },
        );
    let agent = (
        any::<Option<bool>>(),
        option::of(1..u16::MAX),
        option::of(text()),
        span(),
        span(),
    );
    let agent = agent.prop_map(
        |(enabled, port, send, interval, timeout)| AgentCheckConfig {
            enabled,
            port,
            send,
            interval,
            timeout,
        },
    );
    // On the heap, since the strategy for a whole configuration would fill the stack of a test.
    (
        option::of(text()),
        option::of(active.boxed()),
        option::of(passive.boxed()),
        option::of(agent.boxed()),
    )
        .prop_map(|(available_destinations_policy, active, passive, agent)| {
            HealthCheckConfig {
                available_destinations_policy,
                active,
                passive,
                agent,
            }
        })
}

type OwnTls = (
    Option<ClientCertificateConfig>,
    Option<PathBuf>,
    Option<String>,
);

fn own_tls() -> impl Strategy<Value = OwnTls> {
    let path = || option::of(text().prop_map(PathBuf::from));
    let certificate = (path(), path());
    let certificate =
        certificate.prop_map(|(path, key_path)| ClientCertificateConfig { path, key_path });
    (option::of(certificate), path(), option::of(text()))
}

fn client() -> impl Strategy<Value = HttpClientConfig> {
    let proxy = (
        option::of(text()),
        any::<Option<bool>>(),
        texts(),
        any::<Option<bool>>(),
    );
    let proxy = proxy.prop_map(
        |(address, bypass_on_local, bypass_list, use_default_credentials)| WebProxyConfig {
            address,
            bypass_on_local,
            bypass_list,
            use_default_credentials,
        },
    );
    let switches = (
        any::<Option<bool>>(),
        any::<Option<u32>>(),
        any::<Option<bool>>(),
        any::<Option<bool>>(),
    );
    (
        texts(),
        switches,
        option::of(text()),
        option::of(text()),
        option::of(proxy),
        own_tls(),
    )
        .prop_map(
            |(ssl_protocols, switches, request, response, web_proxy, own_tls)| HttpClientConfig {
                ssl_protocols,
                client_certificate: own_tls.0,
                ca_file: own_tls.1,
                server_name: own_tls.2,
                dangerous_accept_any_server_certificate: switches.0,
                max_connections_per_server: switches.1,
                enable_multiple_http2_connections: switches.2,
                request_header_encoding: request,
                response_header_encoding: response,
                web_proxy,
                send_proxy_protocol: switches.3,
                connector: None,
            },
        )
}

fn request() -> impl Strategy<Value = ForwarderRequestConfig> {
    use HttpVersion::{Http2, Http3, Http10, Http11};
    use VersionPolicy as P;
    let versions = vec![None, Some(Http10), Some(Http11), Some(Http2), Some(Http3)];
    let policies = vec![
        None,
        Some(P::RequestVersionOrLower),
        Some(P::RequestVersionOrHigher),
        Some(P::RequestVersionExact),
    ];
    let (versions, policies) = (
        prop::sample::select(versions),
        prop::sample::select(policies),
    );
    (span(), versions, policies, any::<Option<bool>>()).prop_map(
        |(activity_timeout, version, version_policy, allow_response_buffering)| {
            ForwarderRequestConfig {
                activity_timeout,
                version,
                version_policy,
                allow_response_buffering,
            }
        },
    )
}
