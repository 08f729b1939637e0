//! Tests that a real Envoy accepts the resources.

use std::io::Write as _;

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use xds_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::core::v3::{Address, SocketAddress};
use xds_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;
use xds_types::pb::envoy::extensions::filters::http::router::v3::Router;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, http_filter,
};
use xds_types::pb::google::protobuf::Any;
use prost::Message;
use testkit::peers;

use super::super::Bridged;
use super::{bridged, hosts};

/// The part of `envoy.config.bootstrap.v3.Bootstrap` that is written here.
#[derive(Clone, PartialEq, Message)]
struct Bootstrap {
    #[prost(message, optional, tag = "2")]
    static_resources: Option<StaticResources>,
}

/// Listeners and clusters in Envoy's static configuration.
#[derive(Clone, PartialEq, Message)]
struct StaticResources {
    #[prost(message, repeated, tag = "1")]
    listeners: Vec<Listener>,
    #[prost(message, repeated, tag = "2")]
    clusters: Vec<Cluster>,
}

/// A configuration with everything that has an equivalent in Envoy.
const EVERYTHING: &str = r#"{"Routes":{
    "any":{"ClusterId":"plain","Match":{"Path":"/{**rest}"}},
    "hosts":{"ClusterId":"plain","Match":{"Hosts":["a.test","*.a.test:81","[::1]","*:82","*","münchen.test"]}},
    "path":{"ClusterId":"plain","Match":{"Path":"/ü b/{id:int}/v{n}.{e?}"}},
    "kinds":{"ClusterId":"plain","Match":{"Path":"/{a:alpha}/{l:length(2,4)}/{b:bool}/{f:nonfile?}"}},
    "guid":{"ClusterId":"plain","Match":{"Path":"/orders/{g:guid}"}},
    "long":{"ClusterId":"plain","Match":{"Path":"/ll","QueryParameters":[{"Name":"a-long-name","Values":["a rather long value of it","another"],"Mode":"Contains"}]}},
    "file":{"ClusterId":"plain","Match":{"Path":"/app/{**file:file}"}},
    "lists":{"ClusterId":"plain","Match":{"Path":"/l","Methods":["GET","PURGE"],
        "Headers":[{"Name":"a","Values":["x y","(z"]},{"Name":"b","Values":["p"],"Mode":"HeaderPrefix"},{"Name":"c","Mode":"Exists"},
            {"Name":"d","Mode":"NotExists"},{"Name":"e","Values":["1"],"Mode":"Contains"},{"Name":"f","Values":["1","2"],"Mode":"NotContains"}],
        "QueryParameters":[{"Name":"q","Values":["ä b&c"]},{"Name":"r","Values":["1"],"Mode":"NotContains"},{"Name":"s","Mode":"Exists"}]}},
    "shares":{"WeightedClusters":[{"ClusterId":"plain","Weight":95},{"ClusterId":"gone","Weight":5}],"Match":{"Path":"/s"}},
    "nowhere":{"Match":{"Path":"/n"}},
    "secure":{"Match":{"Hosts":["*:80"]},"Redirect":{"Scheme":"https","Host":"b.test:8443","Status":308}},
    "moved":{"Match":{"Path":"/old/{a}/{**r}"},"Redirect":{"Path":"/new/{**r}"}},
    "closed":{"Match":{"Path":"/closed"},"Respond":{"Status":503,"Body":"closed"}},
    "refused":{"ClusterId":"plain","Match":{"Path":"/f"},"Filters":["audit"]},
    "path-set":{"ClusterId":"plain","Match":{"Path":"/1"},"Transforms":[{"PathSet":"/x\\y"}]},
    "prefix":{"ClusterId":"based","Match":{"Path":"/2/{**r}"},"Transforms":[{"PathRemovePrefix":"/2"},{"PathPrefix":"/v2"}]},
    "pattern":{"ClusterId":"plain","Match":{"Path":"/3/{a}/{**r}"},"Transforms":[{"PathPattern":"/n/{a}/{**r}"}]},
    "headers":{"ClusterId":"plain","Match":{"Path":"/4"},"Timeout":"5s","Transforms":[{"RequestHeader":"x-a","Set":"100%"},
        {"RequestHeader":"x-b","Append":""},{"RequestHeaderRemove":"x-c"},{"ResponseHeader":"x-d","Set":"1","When":"Always"},
        {"ResponseHeaderRemove":"server","When":"Always"},{"X-Forwarded":"Append"},{"RequestHeader":"Host","Set":"h.test"}]}},
  "Clusters":{
    "plain":{"LoadBalancingPolicy":"RoundRobin","HealthCheck":{"AvailableDestinationsPolicy":"HealthyAndUnknown",
            "Active":{"Enabled":true,"Path":"/h","Query":"?x=1"},"Passive":{"Enabled":true}},
        "HttpClient":{"MaxConnectionsPerServer":7},
        "Destinations":{"a":{"Address":"http://10.0.0.1/","Weight":3,"Zone":"z1"},"b":{"Address":"http://[2001:db8::1]:81/","Priority":4,
            "Host":"b.test","Health":"http://10.0.0.9:99/"},"c":{"Address":"http://10.0.0.3/","Weight":0}}},
    "based":{"LoadBalancingPolicy":"LeastRequests","HttpRequest":{"Version":"2","VersionPolicy":"RequestVersionExact"},
        "Destinations":{"a":{"Address":"http://10.0.0.1/base"}}},
    "tls":{"SessionAffinity":{"Enabled":true,"AffinityKeyName":"k"},"HttpClient":{"SslProtocols":["Tls13"]},
        "Destinations":{"a":{"Address":"https://tls.test/"}}},
    "mixed":{"LoadBalancingPolicy":"Random","HttpClient":{"DangerousAcceptAnyServerCertificate":true},
        "Destinations":{"a":{"Address":"https://10.0.0.1/"},"b":{"Address":"http://10.0.0.2/"},"c":{"Address":"https://10.0.0.3/","Host":"c.test"}}},
    "empty":{}}}"#;

fn any(type_name: &str, message: &impl Message) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{type_name}"),
        value: message.encode_to_vec(),
    }
}

/// Writes a static configuration with a listener at this port of 127.0.0.1.
pub(super) fn write(bridged: &Bridged, port: u16) -> tempfile::NamedTempFile {
    let mut clusters = Vec::new();
    for service in &bridged.services {
        for cluster in &service.clusters {
            let mut cluster = cluster.clone();
            // There is no server for endpoints.
            if let Some(assignment) = service.assignments.first() {
                cluster.eds_cluster_config = None;
                cluster.cluster_discovery_type =
                    Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into()));
                cluster.load_assignment = Some(assignment.clone());
            }
            clusters.push(cluster);
        }
    }
    let router = HttpFilter {
        name: "envoy.filters.http.router".into(),
        config_type: Some(http_filter::ConfigType::TypedConfig(any(
            "envoy.extensions.filters.http.router.v3.Router",
            &Router::default(),
        ))),
        ..HttpFilter::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: "http".into(),
        http_filters: vec![router],
        route_specifier: Some(RouteSpecifier::RouteConfig(RouteConfiguration {
            name: "main".into(),
            virtual_hosts: hosts(bridged),
            // One of the clusters does not exist.
            validate_clusters: Some(xds_types::pb::google::protobuf::BoolValue { value: false }),
            ..RouteConfiguration::default()
        })),
        ..HttpConnectionManager::default()
    };
    let listener = Listener {
        name: "http".into(),
        address: Some(Address {
            address: Some(AddressKind::SocketAddress(SocketAddress {
                address: "127.0.0.1".into(),
                port_specifier: Some(PortSpecifier::PortValue(port.into())),
                ..SocketAddress::default()
            })),
        }),
        filter_chains: vec![FilterChain {
            filters: vec![Filter {
                name: "http".into(),
                config_type: Some(filter::ConfigType::TypedConfig(any(
                    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                    &manager,
                ))),
            }],
            ..FilterChain::default()
        }],
        ..Listener::default()
    };
    let bootstrap = Bootstrap {
        static_resources: Some(StaticResources {
            clusters,
            listeners: vec![listener],
        }),
    };
    let mut file = tempfile::Builder::new().suffix(".pb").tempfile().unwrap();
    file.write_all(&bootstrap.encode_to_vec()).unwrap();
    file
}

#[tokio::test]
async fn a_real_envoy_accepts_what_is_written() {
    let Some(envoy) = peers::find("envoy") else {
        return;
    };
    let (_, bridged) = bridged(EVERYTHING);
    let clusters = bridged
        .services
        .iter()
        .map(|service| service.clusters.len());
    assert_eq!(clusters.sum::<usize>(), 5);
    let file = write(&bridged, 0);
    let mut command = envoy.command();
    command
        .args(["--mode", "validate", "-l", "warning", "-c"])
        .arg(file.path());
    let output = peers::output(command).await;
    assert!(
        output.status.success(),
        "{}\n{}",
        output.stdout,
        output.stderr
    );
}
