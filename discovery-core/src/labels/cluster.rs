//! A cluster's settings from labels.

use proxy_model::config::{
    ActiveHealthCheckConfig, AffinityCookieConfig, AgentCheckConfig, ClusterConfig,
    ForwarderRequestConfig, HealthCheckConfig, HttpClientConfig, HttpVersion,
    PassiveHealthCheckConfig, SessionAffinityConfig, VersionPolicy, WebProxyConfig,
};

use super::node::LabelNode;

/// Reads all settings of a cluster but its destinations. The labels have the names of the settings:
/// `HealthCheck.Active.Interval`.
pub fn read_cluster(node: &LabelNode<'_>) -> ClusterConfig {
    ClusterConfig {
        load_balancing_policy: node.text("LoadBalancingPolicy"),
        session_affinity: section(node, "SessionAffinity", session_affinity).map(Box::new),
        health_check: section(node, "HealthCheck", health_check).map(Box::new),
        http_client: section(node, "HttpClient", http_client).map(Box::new),
        http_request: section(node, "HttpRequest", http_request),
        metadata: node.map("Metadata"),
        ..Default::default()
    }
}

/// A section that has labels.
fn section<T>(
    node: &LabelNode<'_>,
    name: &str,
    read: impl FnOnce(&LabelNode<'_>) -> T,
) -> Option<T> {
    let child = node.child(name);
    child.exists().then(|| read(&child))
}

fn session_affinity(node: &LabelNode<'_>) -> SessionAffinityConfig {
    SessionAffinityConfig {
        enabled: node.boolean("Enabled"),
        policy: node.text("Policy"),
        failure_policy: node.text("FailurePolicy"),
        affinity_key_name: node.text("AffinityKeyName"),
        drain_timeout: node.time_span("DrainTimeout"),
        cookie: section(node, "Cookie", |cookie| AffinityCookieConfig {
            path: cookie.text("Path"),
            domain: cookie.text("Domain"),
            http_only: cookie.boolean("HttpOnly"),
            secure_policy: cookie.text("SecurePolicy"),
            same_site: cookie.text("SameSite"),
            expiration: cookie.time_span("Expiration"),
            max_age: cookie.time_span("MaxAge"),
            is_essential: cookie.boolean("IsEssential"),
        }),
    }
}

fn health_check(node: &LabelNode<'_>) -> HealthCheckConfig {
    HealthCheckConfig {
        available_destinations_policy: node.text("AvailableDestinationsPolicy"),
        active: section(node, "Active", |active| ActiveHealthCheckConfig {
            enabled: active.boolean("Enabled"),
            interval: active.time_span("Interval"),
            timeout: active.time_span("Timeout"),
            policy: active.text("Policy"),
            rise: active.integer("Rise"),
            fast_interval: active.time_span("FastInterval"),
            probe: active.text("Probe"),
            grpc_service: active.text("GrpcService"),
            path: active.text("Path"),
            query: active.text("Query"),
        }),
        passive: section(node, "Passive", |passive| PassiveHealthCheckConfig {
            enabled: passive.boolean("Enabled"),
            policy: passive.text("Policy"),
            reactivation_period: passive.time_span("ReactivationPeriod"),
        }),
        agent: section(node, "Agent", |agent| AgentCheckConfig {
            enabled: agent.boolean("Enabled"),
            port: agent.integer("Port"),
            send: agent.text("Send"),
            interval: agent.time_span("Interval"),
            timeout: agent.time_span("Timeout"),
        }),
    }
}

fn http_client(node: &LabelNode<'_>) -> HttpClientConfig {
    HttpClientConfig {
        ssl_protocols: node.list("SslProtocols"),
        dangerous_accept_any_server_certificate: node
            .boolean("DangerousAcceptAnyServerCertificate"),
        max_connections_per_server: node.integer("MaxConnectionsPerServer"),
        enable_multiple_http2_connections: node.boolean("EnableMultipleHttp2Connections"),
        request_header_encoding: node.text("RequestHeaderEncoding"),
        response_header_encoding: node.text("ResponseHeaderEncoding"),
        web_proxy: section(node, "WebProxy", |proxy| WebProxyConfig {
            address: proxy.text("Address"),
            bypass_on_local: proxy.boolean("BypassOnLocal"),
            bypass_list: None,
            use_default_credentials: proxy.boolean("UseDefaultCredentials"),
        }),
        // Files of the machine are not for those who deploy services.
        client_certificate: None,
        ca_file: None,
        server_name: None,
        send_proxy_protocol: node.boolean("SendProxyProtocol"),
        // Owners of services do not choose code of the program.
        connector: None,
    }
}

fn http_request(node: &LabelNode<'_>) -> ForwarderRequestConfig {
    ForwarderRequestConfig {
        activity_timeout: node.time_span("ActivityTimeout"),
        version: node.choice(
            "Version",
            &[
                ("1.0", HttpVersion::Http10),
                ("1.1", HttpVersion::Http11),
                ("1", HttpVersion::Http11),
                ("2", HttpVersion::Http2),
                ("2.0", HttpVersion::Http2),
                ("3", HttpVersion::Http3),
                ("3.0", HttpVersion::Http3),
            ],
        ),
        version_policy: node.choice(
            "VersionPolicy",
            &[
                (
                    "RequestVersionOrLower",
                    VersionPolicy::RequestVersionOrLower,
                ),
                (
                    "RequestVersionOrHigher",
                    VersionPolicy::RequestVersionOrHigher,
                ),
                ("RequestVersionExact", VersionPolicy::RequestVersionExact),
            ],
        ),
        allow_response_buffering: node.boolean("AllowResponseBuffering"),
    }
}
