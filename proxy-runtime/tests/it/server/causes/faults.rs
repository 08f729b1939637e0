//! A fault for each cause.

use std::any::Any;
use std::time::Duration;

use proxy_runtime::Cause;
use proxy_runtime::upstream::{TlsClient, UpstreamOptions};
use serde_json::{Value, json};
use testkit::certs::{self, Alpn, CertificateAuthority};
use testkit::faults::{self, RefusingPort, UnansweredPort};
use testkit::origin::Origin;
use testkit::raw::RawOrigin;

/// Peers that live as long as the test.
pub(super) type Peers = Vec<Box<dyn Any + Send + Sync>>;

/// Actions of clients and operators.
pub(super) enum Act {
    /// Sends a request and reads until the end of the connection. The response has this status.
    Ask(String, &'static str),
    /// Sends a request and waits for nothing.
    Hold(String),
    Until(Box<dyn Fn() -> bool + Send + Sync>),
    /// All clients that wait disconnect.
    Leave,
    /// The program declares the destination unhealthy.
    Unhealthy,
    /// The destination becomes the proxy itself.
    LeadBack,
}

/// A proxy, its peers, and what happens.
pub(super) struct Fault {
    pub(super) config: Value,
    pub(super) options: UpstreamOptions,
    pub(super) peers: Peers,
    pub(super) acts: Vec<Act>,
}

/// A proxy whose destination has this address, and a client with a GET that is answered with this status.
fn to(address: &str, status: &'static str) -> Fault {
    Fault {
        config: json!({
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "c": { "Destinations": { "d": { "Address": address } } } },
        }),
        options: UpstreamOptions::default(),
        peers: Vec::new(),
        acts: vec![Act::Ask(get(""), status)],
    }
}

fn to_raw(origin: RawOrigin, status: &'static str) -> Fault {
    to(&origin.url(), status).kept(origin)
}

fn get(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n")
}

fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n{body}")
}

impl Fault {
    fn kept(mut self, peer: impl Any + Send + Sync) -> Self {
        self.peers.push(Box::new(peer));
        self
    }

    fn route(mut self, key: &str, value: Value) -> Self {
        self.config["Routes"]["r"][key] = value;
        self
    }

    fn cluster(mut self, key: &str, value: Value) -> Self {
        self.config["Clusters"]["c"][key] = value;
        self
    }

    fn options(mut self, change: impl FnOnce(&mut UpstreamOptions)) -> Self {
        change(&mut self.options);
        self
    }

    fn acts(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.acts = acts.into_iter().collect();
        self
    }
}

const SOON: &str = "00:00:00.2";

fn idle_soon() -> Value {
    json!({ "ActivityTimeout": SOON })
}

/// A handshake of WebSocket with the key of RFC 6455.
const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The fault that has this cause; `None` if none can be made.
pub(super) fn fault(cause: Cause) -> Option<Fault> {
    Some(match cause {
        Cause::ConnectionRefused => {
            let port = RefusingPort::new();
            to(&port.url(), "502").kept(port)
        }
        // The kernel connects to no broadcast address.
        Cause::NoRouteToHost => to("http://127.255.255.255:9/", "502"),
        // No system asks for a label of more than 63 letters.
        Cause::NameNotResolved => to(&format!("http://{}.invalid/", "a".repeat(64)), "502"),
        Cause::ConnectTimeout => {
            let port = UnansweredPort::new();
            to(&port.url(), "504")
                .kept(port)
                .options(|options| options.connect_timeout = Duration::from_millis(200))
        }
        Cause::CertificateRejected | Cause::ProtocolUnsupported => of_tls(cause),
        Cause::TlsFailed => {
            let origin = RawOrigin::script(|mut connection| async move {
                connection
                    .write_all("HTTP/1.1 400 Bad Request\r\n\r\n")
                    .await
            });
            let address = format!("https://127.0.0.1:{}/", origin.addr().port());
            let ca = CertificateAuthority::new("test");
            to(&address, "502")
                .kept(origin)
                .options(|options| options.tls = Some(trusting(&ca)))
        }
        Cause::WebProxyFailed => {
            let port = RefusingPort::new();
            let settings = json!({ "WebProxy": { "Address": port.url() } });
            to("http://d.invalid/", "502")
                .kept(port)
                .cluster("HttpClient", settings)
        }
        Cause::StreamRefused => {
            // REFUSED_STREAM, each time.
            let exact = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
            to_raw(faults::h2::resets_streams(7), "502").cluster("HttpRequest", exact)
        }
        Cause::ResetBeforeResponse => to_raw(faults::closes_before_answer(), "502"),
        Cause::ResetWhileSending => {
            let origin = RawOrigin::script(|mut connection| async move {
                connection.read_request().await?;
                connection.reset();
                Ok(())
            });
            let request = post("Content-Length: 1000\r\n", "a part");
            to_raw(origin, "502").acts([Act::Ask(request, "502")])
        }
        Cause::ResetWhileResponding => to_raw(faults::closes_mid_body(), "200"),
        Cause::MalformedResponse => to_raw(faults::garbage(), "502"),
        Cause::HeaderTimeout => {
            to_raw(faults::never_answers(), "504").route("Timeout", json!(SOON))
        }
        Cause::ActivityTimeout => {
            to_raw(faults::stops_mid_body(false), "200").cluster("HttpRequest", idle_soon())
        }
        Cause::BodyTimeout => to_raw(faults::stops_mid_body(false), "200")
            .route("Timeout", json!(SOON))
            .route("TimeoutIncludesBody", json!(true)),
        other => return of_others(other),
    })
}

fn trusting(ca: &CertificateAuthority) -> TlsClient {
    let roots = (*ca.roots()).clone();
    TlsClient::with_roots(certs::provider(), roots).unwrap()
}

fn of_tls(cause: Cause) -> Fault {
    let ca = CertificateAuthority::new("test");
    let identity = ca.issue(&["localhost"]);
    let origin = Origin::builder()
        .tls(identity.server_config(Alpn::Http1))
        .start_echo();
    let address = format!("https://localhost:{}/", origin.addr().port());
    let fault = to(&address, "502").kept(origin);
    match cause {
        Cause::CertificateRejected => {
            let other = CertificateAuthority::new("other");
            fault.options(|options| options.tls = Some(trusting(&other)))
        }
        _ => {
            let exact = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
            fault
                .cluster("HttpRequest", exact)
                .options(|options| options.tls = Some(trusting(&ca)))
        }
    }
}

/// A destination of HTTP/1.1 that requires a client certificate, and a cluster with this version.
pub(super) fn without_client_certificate(version: &str) -> Fault {
    let ca = CertificateAuthority::new("test");
    let clients = CertificateAuthority::new("clients");
    let identity = ca.issue(&["localhost"]);
    let origin = Origin::builder()
        .tls(identity.server_config_requiring(&clients, Alpn::Http1))
        .start_echo();
    let address = format!("https://localhost:{}/", origin.addr().port());
    to(&address, "502")
        .kept(origin)
        .cluster("HttpRequest", json!({ "Version": version }))
        .options(|options| options.tls = Some(trusting(&ca)))
}

/// The faults of clients, of the configuration and of the program.
fn of_others(cause: Cause) -> Option<Fault> {
    let origin = Origin::named("origin");
    let well = to(&origin.url(), "200").kept(origin);
    Some(match cause {
        Cause::ClientGone => {
            let origin = faults::never_answers();
            let traffic = origin.traffic().clone();
            let has_come = move || traffic.counts().accepted > 0;
            to_raw(origin, "").acts([
                Act::Hold(get("")),
                Act::Until(Box::new(has_come)),
                Act::Leave,
            ])
        }
        Cause::ClientTooSlow => {
            let request = post("Content-Length: 10\r\n", "part");
            to_raw(faults::never_answers(), "408")
                .cluster("HttpRequest", idle_soon())
                .acts([Act::Ask(request, "408")])
        }
        Cause::BodyTooLarge => {
            let request = post("Content-Length: 10\r\n", "0123456789");
            well.route("MaxRequestBodySize", json!(5))
                .acts([Act::Ask(request, "413")])
        }
        Cause::BodyBroken => {
            let request = post("Transfer-Encoding: chunked\r\n", "zz\r\n");
            well.acts([Act::Ask(request, "400")])
        }
        // Without a key.
        Cause::MalformedRequest => {
            let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\n\r\n";
            well.acts([Act::Ask(request.to_owned(), "400")])
        }
        Cause::NoRoute => well
            .route("Match", json!({ "Path": "/other" }))
            .acts([Act::Ask(get(""), "404")]),
        Cause::NoPartition => {
            let partitions = json!({
                "Key": { "Header": "X-Key" },
                "Partitions": [{ "ClusterId": "c", "LowKey": 0, "HighKey": 9 }],
            });
            let mut fault = well
                .route("PartitionedClusters", partitions)
                .acts([Act::Ask(get("X-Key: 10\r\n"), "400")]);
            let route = fault.config["Routes"]["r"].as_object_mut().unwrap();
            route.remove("ClusterId");
            fault
        }
        Cause::RejectedByPolicy => well
            .route("Filters", json!(["deny"]))
            .acts([Act::Ask(get(""), "403")]),
        Cause::OverLimit => well
            .route("Filters", json!(["limit"]))
            .acts([Act::Ask(get(""), "429")]),
        Cause::IdleTunnel => {
            let origin = RawOrigin::script(|mut connection| async move {
                connection.read_request().await?;
                connection.write_all(AGREED).await?;
                connection.never_answer().await
            });
            let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{HANDSHAKE}\r\n");
            to_raw(origin, "101")
                .cluster("HttpRequest", idle_soon())
                .acts([Act::Ask(request, "101")])
        }
        Cause::NoCluster => well
            .route("ClusterId", json!("missing"))
            .acts([Act::Ask(get(""), "503")]),
        Cause::NoDestination => well
            .cluster("Destinations", json!({}))
            .acts([Act::Ask(get(""), "503")]),
        Cause::AllUnhealthy => well
            .cluster(
                "HealthCheck",
                json!({ "AvailableDestinationsPolicy": "HealthyAndUnknown" }),
            )
            .acts([Act::Unhealthy, Act::Ask(get(""), "503")]),
        Cause::AllEjected => {
            let port = RefusingPort::new();
            let health = json!({
                "Passive": { "Enabled": true },
                "AvailableDestinationsPolicy": "HealthyAndUnknown",
            });
            let metadata =
                json!({ "TransportFailureRateHealthPolicy.MinimalTotalCountThreshold": "1" });
            to(&port.url(), "502")
                .kept(port)
                .cluster("HealthCheck", health)
                .cluster("Metadata", metadata)
                .acts([
                    Act::Ask(get(""), "502"),
                    Act::Ask(get(""), "503"),
                    Act::Ask(get(""), "503"),
                ])
        }
        Cause::ConnectionLimit => {
            let origin = faults::never_answers();
            let traffic = origin.traffic().clone();
            let has_come = move || traffic.counts().accepted > 0;
            to_raw(origin, "")
                .cluster("HttpClient", json!({ "MaxConnectionsPerServer": 1 }))
                .options(|options| options.max_waiting_per_destination = 0)
                .acts([
                    Act::Hold(get("")),
                    Act::Until(Box::new(has_come)),
                    Act::Ask(get(""), "503"),
                ])
        }
        Cause::AffinityRejected => {
            let affinity = json!({
                "Enabled": true,
                "AffinityKeyName": "Key",
                "Policy": "HashCookie",
                "FailurePolicy": "Return503Error",
            });
            well.cluster("SessionAffinity", affinity)
                .acts([Act::Ask(get("Cookie: Key=0123456789abcdef\r\n"), "503")])
        }
        // There are no TLS settings.
        Cause::RequestNotBuilt => to("https://127.0.0.1:1/", "502"),
        Cause::PolicyMissing => well
            .route("AuthorizationPolicy", json!("default"))
            .acts([Act::Ask(get(""), "500")]),
        Cause::AuthorizationUnavailable => well
            .route("Metadata", json!({ "Asks": "Authorization" }))
            .acts([Act::Ask(get(""), "503")]),
        Cause::OverShare => well
            .route("Metadata", json!({ "Asks": "RateLimiter" }))
            .acts([Act::Ask(get(""), "429")]),
        Cause::ExtensionFailed => well
            .route("Filters", json!(["panic"]))
            .acts([Act::Ask(get(""), "500")]),
        Cause::LoopDetected => well.acts([Act::LeadBack, Act::Ask(get(""), "508")]),
        _ => return None,
    })
}
