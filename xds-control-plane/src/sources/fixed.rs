//! The static file: services that live nowhere else, and listeners.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems, yaml};
use tokio::sync::watch;

use super::document::{self, integer, period, protocol};
use super::file::FollowedFile;
use super::reading::Reading;
use crate::translate::{
    HttpListener, Limits, ListenerKind, StaticConfig, StaticEndpoint, StaticListener,
    StaticService, TcpListener,
};

/// Reads a static file.
///
/// # Errors
///
/// Returns all problems of the file, each with its place. A file that a person wrote is accepted as a whole
/// or not at all, so that a typo is noticed.
pub fn parse_static(text: &str) -> Result<StaticConfig, Problems> {
    let document = yaml::parse(text)?;
    let mut problems = Problems::new();
    let read = ObjectReader::read(&document, "", &mut problems, |file| StaticConfig {
        listeners: file.list("listeners", listener).unwrap_or_default(),
        services: file.list("services", service).unwrap_or_default(),
    });
    document::unique(
        &mut problems,
        "/listeners",
        read.iter()
            .flat_map(|file| &file.listeners)
            .map(|l| &l.name),
    );
    document::unique(
        &mut problems,
        "/services",
        read.iter().flat_map(|file| &file.services).map(|s| &s.name),
    );
    match read {
        Some(config) if !problems.has_errors() => Ok(config),
        _ => Err(problems),
    }
}

/// Follows a static file while it is polled: its last known good form, and the problems since then.
pub(super) async fn follow(path: PathBuf, published: watch::Sender<Reading<StaticConfig>>) {
    let mut file = FollowedFile::new(path);
    loop {
        let read = file.next().await.and_then(|text| {
            parse_static(&text).map_err(|problems| format!("{}: {problems}", file.path().display()))
        });
        published.send_if_modified(|reading| match read {
            Ok(config) => reading.read(config, Vec::new()),
            Err(failure) => {
                tracing::warn!(target: super::TARGET, failure, "the static file cannot be used; the \
                    last known good content stays");
                reading.failed(failure)
            }
        });
    }
}

fn listener(node: &Node, pointer: &str, problems: &mut Problems) -> Option<StaticListener> {
    ObjectReader::read(node, pointer, problems, |listener| {
        let name = document::name(listener, "name")?;
        let address = address(listener, "address").unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let port = document::required(listener, "port", |listener| {
            integer(listener, "port", 1..=65_535_u16)
        });
        let tcp = listener.object("tcp", |tcp| {
            Some(TcpListener {
                cluster: document::name(tcp, "cluster")?,
                idle_timeout: period(tcp, "idleTimeout"),
                max_connect_attempts: integer(tcp, "maxConnectAttempts", 1..=100_u32),
            })
        });
        let http = listener.object("http", |http| HttpListener {
            stream_idle_timeout: period(http, "streamIdleTimeout"),
            request_timeout: period(http, "requestTimeout"),
            use_remote_address: http.boolean("useRemoteAddress").unwrap_or_default(),
        });
        let kind = match (tcp, http) {
            (Some(tcp), None) => ListenerKind::Tcp(tcp?),
            (None, Some(http)) => ListenerKind::Http(http),
            _ => {
                let message = "a listener has either `tcp: {cluster: …}` or `http: {}`";
                let problem = Problem::error(listener.pointer(), "one_of", message);
                listener.problems().push(problem);
                return None;
            }
        };
        Some(StaticListener {
            name,
            address,
            port: port?,
            kind,
        })
    })?
}

fn service(node: &Node, pointer: &str, problems: &mut Problems) -> Option<StaticService> {
    ObjectReader::read(node, pointer, problems, |service| {
        let name = document::name(service, "name");
        let protocol = protocol(service, "protocol", true).unwrap_or_default();
        let limits = service.object("limits", |limits| Limits {
            max_connections: integer(limits, "maxConnections", 1..=u32::MAX),
            max_pending_requests: integer(limits, "maxPendingRequests", 1..=u32::MAX),
            max_requests: integer(limits, "maxRequests", 1..=u32::MAX),
            max_retries: integer(limits, "maxRetries", 0..=u32::MAX),
        });
        let read = StaticService {
            name: name.clone().unwrap_or_else(|| "".into()),
            protocol,
            domains: service.texts("domains").unwrap_or_default(),
            timeout: period(service, "timeout"),
            connect_timeout: period(service, "connectTimeout"),
            limits: limits.unwrap_or_default(),
            endpoints: service.list("endpoints", endpoint),
            catalog_service: service.text("consulService").map(Arc::from),
        };
        if read.endpoints.is_some() && read.catalog_service.is_some() {
            let message = "the endpoints are written here or come from Consul, not both";
            let problem = Problem::error(service.pointer_to("consulService"), "conflict", message);
            service.problems().push(problem);
        }
        name.map(|_| read)
    })?
}

/// `10.0.0.1:80`, or an object with the zone.
fn endpoint(node: &Node, pointer: &str, problems: &mut Problems) -> Option<StaticEndpoint> {
    let (text, pointer, zone) = match node {
        Node::Text(text) => (text.clone(), pointer.to_owned(), None),
        _ => ObjectReader::read(node, pointer, problems, |endpoint| {
            let text = document::required(endpoint, "address", |endpoint| endpoint.text("address"));
            let zone = endpoint.text("zone").map(Arc::from);
            Some((text?, endpoint.pointer_to("address"), zone))
        })??,
    };
    match text.trim().parse::<SocketAddr>() {
        Ok(socket) if socket.port() != 0 => Some(StaticEndpoint {
            address: socket.ip(),
            port: socket.port(),
            zone,
        }),
        _ => {
            let shown = discovery_core::text::shortened(&text, 100);
            let message = format!(
                "{shown:?} is no IP address with a port; Envoy does not look up names here"
            );
            let problem = Problem::error(pointer, "invalid_address", message);
            problems.push(problem.with_suggestion("write `10.0.0.1:8080` or `[2001:db8::1]:8080`"));
            None
        }
    }
}

fn address(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<IpAddr> {
    let text = reader.text(key)?;
    let address = text.trim().parse().ok();
    if address.is_none() {
        let message = format!(
            "{:?} is no IP address",
            discovery_core::text::shortened(&text, 100)
        );
        let problem = Problem::error(reader.pointer_to(key), "invalid_address", message);
        reader.problems().push(problem);
    }
    address
}

/// The periods that a person means.
pub(super) const PERIODS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(86_400);
