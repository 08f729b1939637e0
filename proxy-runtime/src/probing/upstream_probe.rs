//! Probes over HTTP.

use std::sync::Arc;

use async_trait::async_trait;
use http::StatusCode;
use http::uri::InvalidUri;
use proxy_model::compiled::{ActiveCheck, Cluster, Destination, ProbeKind};
use proxy_model::transform::path_and_query;

use super::grpc;
use crate::health::{Probe, ProbeError};
use crate::http1::Method;
use crate::upstream::{OwnRequest, Upstreams};

/// The `User-Agent` of probes.
pub(super) const AGENT: &str = concat!(
    "proxy-runtime/",
    env!("CARGO_PKG_VERSION"),
    " (active health check)"
);

/// Probes with a connection, a call of the gRPC health checking protocol, or a `GET` below the destination's health
/// address: the path of the destination or the check, the query of the check, and the HTTP version of the cluster.
///
/// Each probe opens a new connection: a pooled one would not notice that new connections fail.
pub(crate) struct UpstreamProbe(Arc<Upstreams>);

impl UpstreamProbe {
    pub(crate) fn new(upstreams: Arc<Upstreams>) -> Self {
        Self(upstreams)
    }
}

#[async_trait]
impl Probe for UpstreamProbe {
    async fn probe(
        &self,
        cluster: &Cluster,
        destination: &Destination,
    ) -> Result<StatusCode, ProbeError> {
        let address = destination.health_address();
        match cluster.active_check().map(ActiveCheck::probe) {
            None | Some(ProbeKind::Http) => {}
            Some(ProbeKind::Tcp) => {
                let upstream = cluster.upstream();
                let connecting = self.0.connect_once(cluster.id(), address, upstream);
                let connected = connecting.await.map_err(ProbeError::NoAnswer);
                // An open connection is the whole test.
                return connected.map(|()| StatusCode::OK);
            }
            Some(ProbeKind::Grpc(service)) => {
                return grpc::probe(&self.0, cluster, destination, service).await;
            }
        }
        let request = request(cluster.active_check(), destination);
        let request = request.map_err(|error| ProbeError::NoAnswer(error.into()))?;
        self.0
            .send_once(cluster.id(), address, cluster.upstream(), request)
            .await
            .map_err(ProbeError::NoAnswer)
    }
}

fn request(
    check: Option<&ActiveCheck>,
    destination: &Destination,
) -> Result<OwnRequest, InvalidUri> {
    let target = target(check, destination);
    let address = destination.health_address();
    // Probes name the configured host, as requests do.
    let authority = destination.host().unwrap_or_else(|| address.authority());
    let agent = format!("User-Agent: {AGENT}\r\n");
    OwnRequest::new(Method::Get, target, authority, &agent, b"")
}

/// Path and query of the probe.
fn target(check: Option<&ActiveCheck>, destination: &Destination) -> String {
    let path = check.map_or("", |check| check.path_at(destination));
    let query = check.and_then(|check| check.query().strip_prefix('?'));
    path_and_query(destination.health_address(), path, query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::snapshot;

    /// The request for a destination and a check with these settings.
    fn asked(destination: &str, check: &str) -> String {
        let snapshot = snapshot(&format!(
            r#"{{"Clusters":{{"c":{{"HealthCheck":{{"Active":{{"Enabled":true{check}}}}},
                "Destinations":{{"d":{{{destination}}}}}}}}}}}"#
        ));
        let cluster = &snapshot.clusters()[0];
        let request = request(cluster.active_check(), &cluster.destinations()[0]);
        String::from_utf8(request.unwrap().text).unwrap()
    }

    #[test]
    fn the_url_is_made_of_health_or_address_path_and_query() {
        let address = r#""Address":"https://localhost:10000/""#;
        let below = r#""Address":"https://localhost:10000/api""#;
        let health = r#""Health":"https://localhost:20000/""#;
        let health_below = r#""Health":"https://localhost:20000/api""#;
        for (case, destination, check, expected) in [
            ("K09", address.to_owned(), "", "https://localhost:10000/"),
            (
                "K10",
                format!("{address},{health}"),
                "",
                "https://localhost:20000/",
            ),
            (
                "K11",
                address.to_owned(),
                r#","Path":"/api/health/""#,
                "https://localhost:10000/api/health/",
            ),
            (
                "K12",
                format!("{below},{health}"),
                r#","Path":"/health/""#,
                "https://localhost:20000/health/",
            ),
            (
                "K13",
                format!("{address},{health_below}"),
                r#","Path":"/health/""#,
                "https://localhost:20000/api/health/",
            ),
            (
                "K14",
                address.to_owned(),
                r#","Path":"/health","Query":"?key=value""#,
                "https://localhost:10000/health?key=value",
            ),
            (
                "own path",
                format!(r#"{address},"HealthPath":"/own""#),
                r#","Path":"/health","Query":"?key=value""#,
                "https://localhost:10000/own?key=value",
            ),
            (
                "own path below Health",
                format!(r#"{below},{health_below},"HealthPath":"/own""#),
                r#","Path":"/health""#,
                "https://localhost:20000/api/own",
            ),
            (
                "own path, the cluster has none",
                format!(r#"{below},"HealthPath":"/a b?c""#),
                "",
                "https://localhost:10000/api/a%20b%3Fc",
            ),
            (
                "own path that is the root",
                format!(r#"{address},"HealthPath":"/""#),
                r#","Path":"/health""#,
                "https://localhost:10000/",
            ),
        ] {
            let asked = asked(&destination, check);
            let mut lines = asked.lines();
            let target = lines.next().and_then(|line| line.split(' ').nth(1));
            let host = lines.next().and_then(|line| line.strip_prefix("Host: "));
            let url = format!("https://{}{}", host.unwrap(), target.unwrap());
            assert_eq!(url, expected, "{case}");
        }
    }

    #[test]
    fn the_host_of_the_destination_is_sent() {
        let destination = r#""Address":"http://10.0.0.1:81/","Host":"orders.example""#;
        let expected = "GET / HTTP/1.1\r\nHost: orders.example\r\nUser-Agent: proxy-runtime/";
        let asked = asked(destination, "");
        assert!(asked.starts_with(expected), "{asked}");
    }
}
