//! Resources as Envoy takes them, written by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use xds_types::pb::envoy::config::core::v3::api_config_source::ApiType;
use xds_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use xds_types::pb::envoy::config::core::v3::grpc_service::{EnvoyGrpc, TargetSpecifier};
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiConfigSource, ApiVersion, ConfigSource, GrpcService,
    HealthCheck, SocketAddress, address,
};
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use xds_types::pb::envoy::config::listener::v3::filter::ConfigType as NetworkConfig;
use xds_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use xds_types::pb::envoy::extensions::filters::http::router::v3::Router;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType as HttpConfig;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds,
};
use xds_types::pb::google::protobuf::{Any, Duration as ProtoDuration};
use prost::{Message, Name};
use xds_control_plane::snapshot::{
    Bodies, Resource, ResourceSet, ResourceType, Snapshot, Subscription,
};

/// The name of the route configuration.
pub(crate) const ROUTES: &str = "main";

/// The resources to serve: clusters by name with their endpoints, each with a virtual host of its name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) services: Vec<(String, Vec<SocketAddr>)>,
    /// The address of Envoy's listener.
    pub(crate) listener: Option<SocketAddr>,
    /// A cluster that Envoy rejects.
    pub(crate) broken: Option<String>,
    /// The service whose cluster Envoy cannot create and rejects alone.
    pub(crate) unusable: Option<String>,
    /// A setting of every cluster, so that all change at once.
    pub(crate) connect_timeout: Option<Duration>,
}

impl Plan {
    pub(crate) fn service(mut self, name: &str, endpoints: &[SocketAddr]) -> Self {
        self.services.push((name.to_owned(), endpoints.to_vec()));
        self
    }

    pub(crate) fn listen(mut self, address: SocketAddr) -> Self {
        self.listener = Some(address);
        self
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut clusters: Vec<_> = self
            .services
            .iter()
            .map(|(name, _)| self.cluster(name))
            .collect();
        if let Some(name) = &self.broken {
            clusters.push(per_subscription(name, |source| Cluster {
                // A health check without a checker.
                health_checks: vec![HealthCheck {
                    timeout: duration(Duration::from_secs(1)),
                    interval: duration(Duration::from_secs(1)),
                    ..HealthCheck::default()
                }],
                ..cluster(name, source, Duration::from_secs(1))
            }));
        }
        let endpoints = self.services.iter().map(|(name, endpoints)| {
            let assignment = assignment(name, endpoints);
            resource(name, Bodies::Same(assignment.encode_to_vec().into()))
        });
        let routes = RouteConfiguration {
            name: ROUTES.to_owned(),
            virtual_hosts: self
                .services
                .iter()
                .map(|(name, _)| virtual_host(name))
                .collect(),
            ..RouteConfiguration::default()
        };
        let routes = resource(ROUTES, Bodies::Same(routes.encode_to_vec().into()));
        let listeners = self
            .listener
            .map(|address| per_subscription("http", |source| listener(address, source)));
        Snapshot::default()
            .with(ResourceType::Cluster, set(clusters))
            .with(ResourceType::Endpoint, set(endpoints))
            .with(ResourceType::Route, set([routes]))
            .with(ResourceType::Listener, set(listeners))
    }

    fn cluster(&self, name: &str) -> Arc<Resource> {
        let timeout = self.connect_timeout.unwrap_or(Duration::from_secs(1));
        let is_unusable = self.unusable.as_deref() == Some(name);
        per_subscription(name, |source| {
            let mut cluster = cluster(name, source, timeout);
            if is_unusable {
                cluster.eds_cluster_config = None;
            }
            cluster
        })
    }
}

fn set(resources: impl IntoIterator<Item = Arc<Resource>>) -> Arc<ResourceSet> {
    Arc::new(resources.into_iter().collect())
}

fn resource(name: &str, bodies: Bodies) -> Arc<Resource> {
    Arc::new(Resource::new(name, bodies))
}

fn per_subscription<M: Message>(name: &str, make: impl Fn(ConfigSource) -> M) -> Arc<Resource> {
    let body = |subscription| Bytes::from(make(source(subscription)).encode_to_vec());
    resource(
        name,
        Bodies::PerSubscription {
            aggregated: body(Subscription::Aggregated),
            separate: body(Subscription::Separate),
            rest: body(Subscription::Rest),
        },
    )
}

fn source(subscription: Subscription) -> ConfigSource {
    let api = |api_type, source| {
        ConfigSourceSpecifier::ApiConfigSource(ApiConfigSource {
            api_type: api_type as i32,
            transport_api_version: ApiVersion::V3 as i32,
            ..source
        })
    };
    let specifier = match subscription {
        Subscription::Aggregated => ConfigSourceSpecifier::Ads(AggregatedConfigSource::default()),
        Subscription::Separate => api(
            ApiType::Grpc,
            ApiConfigSource {
                grpc_services: vec![GrpcService {
                    target_specifier: Some(TargetSpecifier::EnvoyGrpc(EnvoyGrpc {
                        cluster_name: "xds".to_owned(),
                        ..EnvoyGrpc::default()
                    })),
                    ..GrpcService::default()
                }],
                ..ApiConfigSource::default()
            },
        ),
        Subscription::Rest => api(
            ApiType::Rest,
            ApiConfigSource {
                cluster_names: vec!["xds".to_owned()],
                refresh_delay: duration(Duration::from_millis(100)),
                request_timeout: duration(Duration::from_secs(1)),
                ..ApiConfigSource::default()
            },
        ),
    };
    ConfigSource {
        resource_api_version: ApiVersion::V3 as i32,
        config_source_specifier: Some(specifier),
        ..ConfigSource::default()
    }
}

fn duration(time: Duration) -> Option<ProtoDuration> {
    Some(ProtoDuration {
        seconds: time.as_secs().cast_signed(),
        nanos: time.subsec_nanos().cast_signed(),
    })
}

fn cluster(name: &str, source: ConfigSource, connect_timeout: Duration) -> Cluster {
    Cluster {
        name: name.to_owned(),
        connect_timeout: duration(connect_timeout),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds as i32)),
        eds_cluster_config: Some(EdsClusterConfig {
            eds_config: Some(source),
            ..EdsClusterConfig::default()
        }),
        ignore_health_on_host_removal: true,
        ..Cluster::default()
    }
}

fn assignment(name: &str, endpoints: &[SocketAddr]) -> ClusterLoadAssignment {
    let endpoints = endpoints.iter().map(|endpoint| LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(address(*endpoint)),
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    });
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            lb_endpoints: endpoints.collect(),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    }
}

fn address(socket: SocketAddr) -> Address {
    Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: socket.ip().to_string(),
            port_specifier: Some(PortSpecifier::PortValue(socket.port().into())),
            ..SocketAddress::default()
        })),
    }
}

fn virtual_host(name: &str) -> VirtualHost {
    VirtualHost {
        name: name.to_owned(),
        domains: vec![format!("{name}.example")],
        routes: vec![Route {
            r#match: Some(RouteMatch {
                path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
                ..RouteMatch::default()
            }),
            action: Some(Action::Route(RouteAction {
                cluster_specifier: Some(ClusterSpecifier::Cluster(name.to_owned())),
                ..RouteAction::default()
            })),
            ..Route::default()
        }],
        ..VirtualHost::default()
    }
}

fn listener(at: SocketAddr, source: ConfigSource) -> Listener {
    let manager = HttpConnectionManager {
        stat_prefix: "http".to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            route_config_name: ROUTES.to_owned(),
            config_source: Some(source),
        })),
        http_filters: vec![HttpFilter {
            name: "envoy.filters.http.router".to_owned(),
            config_type: Some(HttpConfig::TypedConfig(any(&Router::default()))),
            ..HttpFilter::default()
        }],
        ..HttpConnectionManager::default()
    };
    Listener {
        name: "http".to_owned(),
        address: Some(address(at)),
        filter_chains: vec![FilterChain {
            filters: vec![Filter {
                name: "envoy.filters.network.http_connection_manager".to_owned(),
                config_type: Some(NetworkConfig::TypedConfig(any(&manager))),
            }],
            ..FilterChain::default()
        }],
        ..Listener::default()
    }
}

fn any<M: Name + Message>(message: &M) -> Any {
    Any {
        type_url: M::type_url(),
        value: message.encode_to_vec(),
    }
}
