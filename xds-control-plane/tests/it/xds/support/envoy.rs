//! A real Envoy, fed by the server under test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::peers::{self, Peer, PeerProcess};
use testkit::time::{GUARD, within};

/// The kind of an Envoy's subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Aggregated,
    AggregatedDelta,
    Separate,
    Rest,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [
        Self::Aggregated,
        Self::AggregatedDelta,
        Self::Separate,
        Self::Rest,
    ];

    fn dynamic_resources(self) -> Value {
        let service = json!([{ "envoy_grpc": { "cluster_name": "xds" } }]);
        let ads = |api_type: &str| {
            let source = json!({ "ads": {}, "resource_api_version": "V3" });
            json!({
                "ads_config": {
                    "api_type": api_type, "transport_api_version": "V3", "grpc_services": service,
                },
                "cds_config": source, "lds_config": source,
            })
        };
        let each = |source: Value| {
            let source = json!({ "resource_api_version": "V3", "api_config_source": source });
            json!({ "cds_config": source, "lds_config": source })
        };
        match self {
            Self::Aggregated => ads("GRPC"),
            Self::AggregatedDelta => ads("DELTA_GRPC"),
            Self::Separate => each(json!({
                "api_type": "GRPC", "transport_api_version": "V3", "grpc_services": service,
            })),
            Self::Rest => each(json!({
                "api_type": "REST", "transport_api_version": "V3", "cluster_names": ["xds"],
                "refresh_delay": "0.1s", "request_timeout": "1s",
            })),
        }
    }
}

pub(crate) struct Envoy {
    process: PeerProcess,
    admin: SocketAddr,
}

/// The loopback address of an Envoy, which no other test uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(Ipv4Addr);

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU8 = AtomicU8::new(0);
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let own = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(Ipv4Addr::new(127, 100 + own, high, low))
    }

    /// The address for requests.
    pub(crate) fn listener(self) -> SocketAddr {
        SocketAddr::from((self.0, 10_000))
    }

    fn admin(self) -> SocketAddr {
        SocketAddr::from((self.0, 9_901))
    }
}

impl Envoy {
    /// The program, if it is there.
    #[track_caller]
    pub(crate) fn find() -> Option<Peer> {
        peers::find("envoy")
    }

    pub(crate) fn start(program: &Peer, place: Place, way: Way, server: SocketAddr) -> Self {
        Self::start_with(program, place, way, server, None)
    }

    /// Starts an Envoy with this transport socket to the control plane.
    pub(crate) fn start_with(
        program: &Peer,
        place: Place,
        way: Way,
        server: SocketAddr,
        socket: Option<Value>,
    ) -> Self {
        let mut xds = xds_cluster(way, server);
        if let Some(socket) = socket {
            xds["transport_socket"] = socket;
        }
        let admin = place.admin();
        let config = json!({
            "node": { "id": "wtf", "cluster": "vertis-cluster" },
            "admin": { "address": address(admin) },
            "dynamic_resources": way.dynamic_resources(),
            "static_resources": { "clusters": [xds] },
        });
        let mut command = program.command();
        command.args([
            "--concurrency",
            "1",
            "--use-dynamic-base-id",
            "-l",
            "warning",
        ]);
        command.args(["--config-yaml", &config.to_string()]);
        Self {
            process: peers::spawn(command),
            admin,
        }
    }

    /// Waits until `condition` is true. Shows Envoy's output if it does not become true.
    pub(crate) async fn eventually(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let asked = within(GUARD, async {
            while !condition().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        if asked.await.is_err() {
            let output = self.process.output();
            let stats = self.ask("/stats?filter=update_|active|warming").await;
            panic!("not within {GUARD:?}: {what}\n{output}\n{stats:?}");
        }
    }

    /// Returns the response of its admin API, if it is available.
    pub(crate) async fn ask(&self, path: &str) -> Option<String> {
        let mut connection = Connection::http1(self.admin).await.ok()?;
        let answer = connection.get(path).await.ok()?;
        Some(answer.text())
    }

    /// The value of a counter or gauge; nothing before it exists.
    pub(crate) async fn stat(&self, name: &str) -> Option<u64> {
        let text = self.ask(&format!("/stats?filter=^{name}$")).await?;
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?
            .parse()
            .ok()
    }

    pub(crate) async fn wait_for_stat(&self, name: &str, holds: impl Fn(u64) -> bool) {
        self.eventually(name, async || self.stat(name).await.is_some_and(&holds))
            .await;
    }
}

fn address(socket: SocketAddr) -> Value {
    json!({ "socket_address": { "address": socket.ip(), "port_value": socket.port() } })
}

fn xds_cluster(way: Way, server: SocketAddr) -> Value {
    let mut cluster = json!({
        "name": "xds",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": "xds",
            "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": address(server) } }] }],
        },
    });
    if way != Way::Rest {
        let options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
        cluster["typed_extension_protocol_options"] = json!({
            options: {
                "@type": format!("type.googleapis.com/{options}"),
                "explicit_http_config": { "http2_protocol_options": {} },
            },
        });
    }
    cluster
}
