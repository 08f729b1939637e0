//! Compilation of the connection and request settings of destinations.

use std::sync::Arc;
use std::time::Duration;

use super::health::positive;
use super::policy::{self, PolicyWords};
use super::{Scope, filled, tls, web_proxy};
use crate::compiled::{Upstream, WebProxy};
use crate::config::{ClusterConfig, HttpClientConfig, HttpVersion, VersionPolicy};
use crate::suggest::{did_you_mean, listed, shortened};

const DEFAULT_ACTIVITY_TIMEOUT: Duration = Duration::from_secs(100);

pub(super) fn compile(config: &ClusterConfig, scope: &mut Scope<'_>) -> Option<Upstream> {
    let request = config.http_request.clone().unwrap_or_default();
    if request.version == Some(HttpVersion::Http10) {
        scope.warning(
            "HttpRequest/Version",
            "http_1_0",
            "HTTP/1.0 opens a connection for every request and cannot stream; few servers need it",
        );
    }
    if request.allow_response_buffering == Some(true) {
        scope.warning(
            "HttpRequest/AllowResponseBuffering",
            "no_effect",
            "responses are never buffered: each part is sent on as it comes",
        );
    }
    let activity_timeout = positive(
        request.activity_timeout,
        DEFAULT_ACTIVITY_TIMEOUT,
        "HttpRequest/ActivityTimeout",
        scope,
    );
    let default = HttpClientConfig::default();
    let client = config.http_client.as_deref().unwrap_or(&default);
    let mut scope = scope.below("HttpClient");
    let protocols = tls_versions(client, &mut scope);
    if client.max_connections_per_server == Some(0) {
        scope.error_with(
            "MaxConnectionsPerServer",
            "not_positive",
            "no connection is allowed",
            "leave it out for no limit",
        );
    }
    for (key, encoding) in [
        ("RequestHeaderEncoding", &client.request_header_encoding),
        ("ResponseHeaderEncoding", &client.response_header_encoding),
    ] {
        if let Some(encoding) = filled(encoding.as_ref()) {
            check_encoding(encoding, key, &mut scope);
        }
    }
    let web_proxy = match &client.web_proxy {
        Some(config) => web_proxy::compile(config, &mut scope.below("WebProxy")),
        None => Some(None),
    };
    if client.dangerous_accept_any_server_certificate == Some(true) && client.ca_file.is_none() {
        scope.warning(
            "DangerousAcceptAnyServerCertificate",
            "any_certificate",
            "whoever answers at the address of a destination is trusted; for development only",
        );
    }
    let connector = connector(client, &mut scope);
    if client.send_proxy_protocol == Some(true) {
        check_proxy_protocol(config, web_proxy.as_ref(), &mut scope);
    }
    let own_tls = tls::compile(config, client, &mut scope);
    let (tls12, tls13) = protocols?;
    let own_tls = own_tls?;
    let connector = connector?;
    // A connector does all of it.
    let web_proxy = web_proxy?.filter(|_| connector.is_none());
    let sends_proxy_protocol = client.send_proxy_protocol == Some(true) && connector.is_none();
    Some(Upstream {
        version: request.version.unwrap_or(HttpVersion::Http2),
        version_policy: request.version_policy.unwrap_or_default(),
        activity_timeout: activity_timeout?,
        max_connections: client.max_connections_per_server,
        limited_by_agents: has_agents(config),
        multiple_http2_connections: client.enable_multiple_http2_connections.unwrap_or(true),
        accept_any_certificate: client
            .dangerous_accept_any_server_certificate
            .unwrap_or_default(),
        tls12,
        tls13,
        tls_files: own_tls.files.map(Arc::new),
        server_name: own_tls.server_name,
        web_proxy: web_proxy.map(Arc::new),
        sends_proxy_protocol,
        connector,
    })
}

/// The connector of the program that the cluster names, and warnings for settings that it has no use for.
fn connector(client: &HttpClientConfig, scope: &mut Scope<'_>) -> Option<Option<Arc<str>>> {
    const KIND: PolicyWords = PolicyWords {
        name: "connector",
        unknown: "unknown_connector",
    };
    if filled(client.connector.as_ref()).is_none() {
        return Some(None);
    }
    let registered = &scope.options.connectors;
    let written = client.connector.as_ref();
    let name = policy::resolve(written, KIND, &[], registered, "Connector", scope)?;
    for (key, is_set) in [
        ("SslProtocols", client.ssl_protocols.is_some()),
        (
            "DangerousAcceptAnyServerCertificate",
            client.dangerous_accept_any_server_certificate == Some(true),
        ),
        ("ClientCertificate", client.client_certificate.is_some()),
        ("CaFile", client.ca_file.is_some()),
        ("ServerName", client.server_name.is_some()),
        ("WebProxy", client.web_proxy.is_some()),
        (
            "SendProxyProtocol",
            client.send_proxy_protocol == Some(true),
        ),
    ] {
        if is_set {
            let message = format!("it has no effect: the connector `{name}` opens the connections");
            scope.warning(key, "unused_by_connector", message);
        }
    }
    Some(Some(name))
}

/// True if agents on the destinations may limit connections.
fn has_agents(config: &ClusterConfig) -> bool {
    let health = config.health_check.as_ref();
    let agent = health.and_then(|health| health.agent.as_ref());
    agent.is_some_and(|agent| agent.enabled == Some(true))
}

/// Rejects settings that leave no place for the header of the PROXY protocol.
fn check_proxy_protocol(
    config: &ClusterConfig,
    web_proxy: Option<&Option<WebProxy>>,
    scope: &mut Scope<'_>,
) {
    const KEY: &str = "SendProxyProtocol";
    let request = config.http_request.as_ref();
    let version = request.and_then(|request| request.version);
    let policy = request.and_then(|request| request.version_policy);
    let needs_http2 = matches!(
        version.unwrap_or(HttpVersion::Http2),
        HttpVersion::Http2 | HttpVersion::Http3
    ) && policy.unwrap_or_default() != VersionPolicy::RequestVersionOrLower;
    if needs_http2 {
        scope.error_with(
            KEY,
            "contradiction",
            "the header names one client, and a connection of HTTP/2 has requests of many",
            "write `\"Version\": \"1.1\"` in `HttpRequest`",
        );
    }
    if web_proxy.is_some_and(Option::is_some) {
        scope.error_with(
            KEY,
            "contradiction",
            "connections begin at the forward proxy of `WebProxy`, which expects no header",
            "remove one of them",
        );
    }
}

/// Returns whether TLS 1.2 and TLS 1.3 are enabled.
fn tls_versions(client: &HttpClientConfig, scope: &mut Scope<'_>) -> Option<(bool, bool)> {
    /// The members of .NET's `SslProtocols`.
    const NAMES: [&str; 8] = [
        "Tls12", "Tls13", "None", "Tls11", "Tls", "Ssl3", "Ssl2", "Default",
    ];
    let Some(written) = client
        .ssl_protocols
        .as_ref()
        .filter(|names| !names.is_empty())
    else {
        return Some((true, true));
    };
    let (mut tls12, mut tls13, mut known) = (false, false, true);
    for (i, name) in written.iter().enumerate() {
        let place = format!("SslProtocols/{i}");
        match NAMES
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(name.trim()))
        {
            Some("Tls12") => tls12 = true,
            Some("Tls13") => tls13 = true,
            // `None` leaves the versions to the system.
            Some("None") => (tls12, tls13) = (true, true),
            Some(old) => scope.warning(
                &place,
                "insecure_tls_version",
                format!("`{old}` is broken (RFC 8996) and is not spoken"),
            ),
            None => {
                known = false;
                let message = format!("`{}` is not one of {}", shortened(name), listed(NAMES));
                match did_you_mean(name, NAMES) {
                    Some(near) => scope.error_with(&place, "unknown_value", message, near),
                    None => scope.error(&place, "unknown_value", message),
                }
            }
        }
    }
    if known && !tls12 && !tls13 {
        scope.error_with(
            "SslProtocols",
            "insecure_tls_version",
            "none of these versions of TLS is spoken",
            "use `Tls12` and `Tls13`",
        );
        return None;
    }
    Some((tls12, tls13))
}

fn check_encoding(name: &str, key: &str, scope: &mut Scope<'_>) {
    /// Names of the encodings that .NET has without extra packages.
    const NAMES: [&str; 16] = [
        "utf-8",
        "us-ascii",
        "iso-8859-1",
        "latin1",
        "ascii",
        "utf8",
        "utf-16",
        "utf-16le",
        "utf-16be",
        "unicode",
        "utf-32",
        "utf-32le",
        "utf-32be",
        "utf-7",
        "unicodefffe",
        "l1",
    ];
    /// Encodings for which passing the bytes through unchanged gives the same result, for every value in
    /// practical use.
    const LIKE_BYTES: [&str; 7] = [
        "utf-8",
        "utf8",
        "us-ascii",
        "ascii",
        "iso-8859-1",
        "latin1",
        "l1",
    ];
    let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_one_of(&LIKE_BYTES) {
        return;
    }
    if is_one_of(&NAMES) {
        scope.warning(
            key,
            "no_effect",
            "header values are passed on byte by byte, so the encoding has no effect",
        );
        return;
    }
    scope.error_with(
        key,
        "unknown_encoding",
        format!("`{}` is not the name of an encoding", shortened(name)),
        did_you_mean(name, NAMES).unwrap_or_else(|| "use `utf-8` or `latin1`".to_owned()),
    );
}
