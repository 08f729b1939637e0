//! The verdict of a real Envoy on a service.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use testkit::peers::{self, Peer};
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;
use xds_types::pb::google::protobuf::BoolValue;

use crate::assemble::{ResourceOptions, ServiceResources, encode};
use crate::server::ENVOY_DESCRIPTORS;
use crate::snapshot::Subscription;

/// Validates a bootstrap with the service by a real Envoy. Returns its message as the error.
pub(crate) async fn validate(envoy: &Peer, service: &ServiceResources) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("envoy.json");
    std::fs::write(&path, bootstrap(service).to_string()).unwrap();
    let mut command = envoy.command();
    command
        .args([
            "--mode",
            "validate",
            "-l",
            "error",
            "--use-dynamic-base-id",
            "-c",
        ])
        .arg(&path);
    let output = peers::output_within(Duration::from_secs(60), command).await;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}{}", output.stdout, output.stderr)),
    }
}

fn json_of(pool: &DescriptorPool, name: &str, body: Bytes) -> Value {
    let descriptor = pool.get_message_by_name(name).unwrap();
    let message = DynamicMessage::decode(descriptor, body).unwrap();
    serde_json::to_value(&message).unwrap()
}

fn bootstrap(service: &ServiceResources) -> Value {
    let pool = DescriptorPool::decode(ENVOY_DESCRIPTORS).unwrap();
    let options = ResourceOptions::default();
    let cluster = |message: &Cluster| {
        let resource = encode::cluster(message, options.refresh_delay, &options);
        json_of(
            &pool,
            "envoy.config.cluster.v3.Cluster",
            resource.body(Subscription::Aggregated).clone(),
        )
    };
    let mut clusters: Vec<_> = service.clusters.iter().map(cluster).collect();
    // Endpoints are checked where they are known from the beginning.
    clusters.extend(
        service
            .assignments
            .iter()
            .enumerate()
            .map(|(at, assignment)| {
                let fixed = Cluster {
                    name: format!("endpoints {at}"),
                    load_assignment: Some(assignment.clone()),
                    ..Cluster::default()
                };
                json_of(
                    &pool,
                    "envoy.config.cluster.v3.Cluster",
                    fixed.encode_to_vec().into(),
                )
            }),
    );
    clusters.push(json!({
        "name": "xds", "type": "STATIC",
        "load_assignment": {"cluster_name": "xds", "endpoints": [{"lb_endpoints": [
            {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 1}}}},
        ]}]},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}},
        }},
    }));
    let routes = RouteConfiguration {
        name: "main".to_owned(),
        virtual_hosts: service.virtual_hosts.clone(),
        // Like requested route configurations.
        validate_clusters: Some(BoolValue { value: false }),
        ..RouteConfiguration::default()
    };
    let routes = json_of(
        &pool,
        "envoy.config.route.v3.RouteConfiguration",
        routes.encode_to_vec().into(),
    );
    let mut listeners: Vec<_> = service
        .listeners
        .iter()
        .map(|listener| {
            let resource = encode::listener(listener, options.refresh_delay, &options);
            json_of(
                &pool,
                "envoy.config.listener.v3.Listener",
                resource.body(Subscription::Aggregated).clone(),
            )
        })
        .collect();
    listeners.push(json!({
        "name": "routes",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 1}},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                "stat_prefix": "routes", "route_config": routes,
                "http_filters": [{
                    "name": "envoy.filters.http.router",
                    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
                }],
            },
        }]}],
    }));
    let ads = json!({"ads": {}, "resource_api_version": "V3"});
    json!({
        "node": {"id": "oracle", "cluster": "oracle"},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "GRPC", "transport_api_version": "V3",
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}],
            },
            "cds_config": ads, "lds_config": ads,
        },
        "static_resources": {"clusters": clusters, "listeners": listeners},
    })
}
