//! Envoy: only the router, without generated request ids and statistics.

use serde_json::{Value, json};

use super::Setup;

const CONNECTION_MANAGER: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ROUTER: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const TLS: &str =
    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";

/// Renders the configuration: JSON, which is YAML as well. The connection manager accepts HTTP/1.1
/// and HTTP/2 on either port.
pub(super) fn configuration(setup: &Setup<'_>) -> String {
    let ports = setup.ports;
    let endpoints: Vec<_> = setup
        .origins
        .iter()
        .map(|origin| json!({ "endpoint": { "address": address(origin.port()) } }))
        .collect();
    let many = setup.open_files;
    let configuration = json!({
        "static_resources": {
            "listeners": [
                listener("http", ports.http, None),
                listener("h2c", ports.h2c, None),
                listener("tls", ports.tls, Some(tls(setup))),
            ],
            "clusters": [{
                "name": "origins",
                "type": "STATIC",
                "connect_timeout": "5s",
                // The less busy of two: the default choice count.
                "lb_policy": "LEAST_REQUEST",
                "circuit_breakers": { "thresholds": [{
                    "max_connections": many,
                    "max_pending_requests": many,
                    "max_requests": many,
                }] },
                "load_assignment": { "cluster_name": "origins", "endpoints": [{ "lb_endpoints": endpoints }] },
            }],
        },
    });
    format!("{configuration:#}\n")
}

fn address(port: u16) -> Value {
    json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } })
}

fn listener(name: &str, port: u16, tls: Option<Value>) -> Value {
    let mut chain = json!({ "filters": [{
        "name": "http",
        "typed_config": {
            "@type": CONNECTION_MANAGER,
            "stat_prefix": name,
            "codec_type": "AUTO",
            "generate_request_id": false,
            // Adds X-Forwarded-For and -Proto.
            "use_remote_address": true,
            "route_config": { "virtual_hosts": [{
                "name": "all",
                "domains": ["*"],
                "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "origins" } }],
                "request_headers_to_add": [{
                    "header": { "key": "x-forwarded-host", "value": "%REQ(:authority)%" },
                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                }],
            }] },
            "http_filters": [{
                "name": "router",
                "typed_config": { "@type": ROUTER, "suppress_envoy_headers": true, "dynamic_stats": false },
            }],
        },
    }] });
    if let Some(tls) = tls {
        chain["transport_socket"] = tls;
    }
    json!({ "name": name, "address": address(port), "filter_chains": [chain] })
}

fn tls(setup: &Setup<'_>) -> Value {
    json!({
        "name": "tls",
        "typed_config": {
            "@type": TLS,
            "common_tls_context": {
                "alpn_protocols": ["http/1.1"],
                "tls_params": { "tls_minimum_protocol_version": "TLSv1_3" },
                "tls_certificates": [{
                    "certificate_chain": { "filename": setup.certificate.chain },
                    "private_key": { "filename": setup.certificate.key },
                }],
            },
        },
    })
}
