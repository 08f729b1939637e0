//! Reading a cluster.

use std::path::PathBuf;

use super::node::Node;
use super::reader::ObjectReader;
use super::scalar::{HTTP_VERSIONS, VERSION_POLICIES};
use crate::config::{
    ActiveHealthCheckConfig, AffinityCookieConfig, AgentCheckConfig, ClientCertificateConfig,
    ClusterConfig, DestinationConfig, ForwarderRequestConfig, HealthCheckConfig, HttpClientConfig,
    PassiveHealthCheckConfig, SessionAffinityConfig, WebProxyConfig,
};
use crate::id::DestinationId;
use crate::problem::Problem;
use crate::suggest::shortened;

pub(super) fn read(cluster: &mut ObjectReader<'_, '_>) -> ClusterConfig {
    let destinations = cluster.entries("Destinations", |_, node, pointer, problems| {
        if let Node::Text(address) = node {
            let message = "expected an object, found text";
            let problem = Problem::error(pointer, "wrong_type", message);
            // Perhaps it has a password.
            let shown = match address.contains('@') {
                true => "http://host:port/".to_owned(),
                false => shortened(address),
            };
            problems
                .push(problem.with_suggestion(format!(r#"write `{{ "Address": "{shown}" }}`"#)));
            return Some(DestinationConfig::default());
        }
        // An unreadable destination keeps its id, so that the rest of the cluster can be checked.
        Some(ObjectReader::read(node, pointer, problems, destination).unwrap_or_default())
    });
    let config = ClusterConfig {
        load_balancing_policy: cluster.text("LoadBalancingPolicy"),
        session_affinity: cluster.object("SessionAffinity", affinity).map(Box::new),
        health_check: cluster.object("HealthCheck", health).map(Box::new),
        http_client: cluster.object("HttpClient", http_client).map(Box::new),
        http_request: cluster.object("HttpRequest", http_request),
        destinations: destinations
            .unwrap_or_default()
            .into_iter()
            .map(|(id, config)| (DestinationId::from(id), config))
            .collect(),
        metadata: cluster.text_map("Metadata"),
    };
    cluster.renamed(
        "ClusterId",
        "the id is the key of the cluster's object: `\"Clusters\": { \"id\": { … } }`",
    );
    config
}

pub(super) fn destination(destination: &mut ObjectReader<'_, '_>) -> DestinationConfig {
    DestinationConfig {
        address: destination.text("Address").unwrap_or_default(),
        health: destination.text("Health"),
        health_path: destination.text("HealthPath"),
        host: destination.text("Host"),
        weight: destination.integer("Weight", 0..=u32::MAX),
        priority: destination.integer("Priority", 0..=u32::MAX),
        zone: destination.text("Zone"),
        metadata: destination.text_map("Metadata"),
    }
}

fn affinity(affinity: &mut ObjectReader<'_, '_>) -> SessionAffinityConfig {
    let enabled = affinity.boolean("Enabled");
    let is_on = enabled == Some(true);
    let config = SessionAffinityConfig {
        enabled,
        policy: affinity.text("Policy"),
        failure_policy: affinity.text("FailurePolicy"),
        affinity_key_name: affinity.text("AffinityKeyName"),
        drain_timeout: affinity.positive_time_span("DrainTimeout", is_on),
        cookie: affinity.object("Cookie", |cookie| AffinityCookieConfig {
            path: cookie.text("Path"),
            domain: cookie.text("Domain"),
            http_only: cookie.boolean("HttpOnly"),
            secure_policy: cookie.text("SecurePolicy"),
            same_site: cookie.text("SameSite"),
            expiration: cookie.positive_time_span("Expiration", is_on),
            max_age: cookie.positive_time_span("MaxAge", is_on),
            is_essential: cookie.boolean("IsEssential"),
        }),
    };
    affinity.renamed("Mode", "write `Policy`");
    affinity.renamed("Settings", "write `AffinityKeyName` and `Cookie`");
    config
}

fn health(health: &mut ObjectReader<'_, '_>) -> HealthCheckConfig {
    HealthCheckConfig {
        available_destinations_policy: health.text("AvailableDestinationsPolicy"),
        active: health.object("Active", |active| {
            let enabled = active.boolean("Enabled");
            let is_on = enabled == Some(true);
            ActiveHealthCheckConfig {
                enabled,
                interval: active.positive_time_span("Interval", is_on),
                timeout: active.positive_time_span("Timeout", is_on),
                policy: active.text("Policy"),
                rise: active.integer("Rise", 1..=u32::MAX),
                fast_interval: active.positive_time_span("FastInterval", is_on),
                probe: active.text("Probe"),
                grpc_service: active.text("GrpcService"),
                path: active.text("Path"),
                query: active.text("Query"),
            }
        }),
        passive: health.object("Passive", |passive| {
            let enabled = passive.boolean("Enabled");
            PassiveHealthCheckConfig {
                enabled,
                policy: passive.text("Policy"),
                reactivation_period: passive
                    .positive_time_span("ReactivationPeriod", enabled == Some(true)),
            }
        }),
        agent: health.object("Agent", |agent| {
            let enabled = agent.boolean("Enabled");
            let is_on = enabled == Some(true);
            AgentCheckConfig {
                enabled,
                port: agent.integer("Port", 1..=u16::MAX),
                send: agent.text("Send"),
                interval: agent.positive_time_span("Interval", is_on),
                timeout: agent.positive_time_span("Timeout", is_on),
            }
        }),
    }
}

fn http_client(client: &mut ObjectReader<'_, '_>) -> HttpClientConfig {
    let config = HttpClientConfig {
        ssl_protocols: ssl_protocols(client),
        dangerous_accept_any_server_certificate: client
            .boolean("DangerousAcceptAnyServerCertificate"),
        client_certificate: client.object("ClientCertificate", client_certificate),
        ca_file: client.text("CaFile").map(PathBuf::from),
        server_name: client.text("ServerName"),
        max_connections_per_server: client.integer("MaxConnectionsPerServer", 0..=u32::MAX),
        enable_multiple_http2_connections: client.boolean("EnableMultipleHttp2Connections"),
        request_header_encoding: client.text("RequestHeaderEncoding"),
        response_header_encoding: client.text("ResponseHeaderEncoding"),
        send_proxy_protocol: client.boolean("SendProxyProtocol"),
        connector: client.text("Connector"),
        web_proxy: client.object("WebProxy", |proxy| WebProxyConfig {
            address: proxy.text("Address"),
            bypass_on_local: proxy.boolean("BypassOnLocal"),
            bypass_list: proxy.texts("BypassList"),
            use_default_credentials: proxy.boolean("UseDefaultCredentials"),
        }),
    };
    client.renamed(
        "ActivityContextHeaders",
        "leave it out: headers for tracing are passed on as they come",
    );
    config
}

/// Certificates come from files.
const STORES: &str = "write `Path` and `KeyPath`: certificates are read from PEM files";

fn client_certificate(certificate: &mut ObjectReader<'_, '_>) -> ClientCertificateConfig {
    let config = ClientCertificateConfig {
        path: certificate.text("Path").map(PathBuf::from),
        key_path: certificate.text("KeyPath").map(PathBuf::from),
    };
    for (key, instead) in [
        (
            "Password",
            "keep the key in a PEM file that is not encrypted",
        ),
        ("Subject", STORES),
        ("Store", STORES),
        ("Location", STORES),
        ("AllowInvalid", STORES),
    ] {
        if certificate.peek(key).is_some() {
            let message = format!("`{key}` of a certificate is not supported");
            let pointer = certificate.pointer_to(key);
            let problem = Problem::error(pointer, "unsupported_key", message);
            certificate.skip(key);
            certificate
                .problems()
                .push(problem.with_suggestion(instead));
        }
    }
    config
}

/// A list of names, or one text with the names between commas.
fn ssl_protocols(client: &mut ObjectReader<'_, '_>) -> Option<Vec<String>> {
    let is_text = |node: &Node| matches!(node, Node::Text(_));
    if !client.peek("SslProtocols").is_some_and(is_text) {
        return client.texts("SslProtocols");
    }
    let names = client.text("SslProtocols")?;
    Some(
        names
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect(),
    )
}

fn http_request(request: &mut ObjectReader<'_, '_>) -> ForwarderRequestConfig {
    let config = ForwarderRequestConfig {
        activity_timeout: request.positive_time_span("ActivityTimeout", true),
        version: request.choice("Version", &HTTP_VERSIONS),
        version_policy: request.choice("VersionPolicy", &VERSION_POLICIES),
        allow_response_buffering: request.boolean("AllowResponseBuffering"),
    };
    request.renamed("Timeout", "write `ActivityTimeout`");
    config
}
