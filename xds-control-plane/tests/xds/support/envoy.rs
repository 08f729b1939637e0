//! A real Envoy, fed by the server under test.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::peers::{self, Peer, PeerProcess};
use testkit::time::eventually;

/// How an Envoy asks for its configuration.
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

impl Envoy {
    /// The program, if it is there.
    #[track_caller]
    pub(crate) fn find() -> Option<Peer> {
        peers::find("envoy")
    }

    pub(crate) async fn start(program: &Peer, way: Way, server: SocketAddr) -> Self {
        let admin = free_address();
        let config = json!({
            "node": { "id": "wtf", "cluster": "vertis-cluster" },
            "admin": { "address": address(admin) },
            "dynamic_resources": way.dynamic_resources(),
            "static_resources": { "clusters": [xds_cluster(way, server)] },
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
        let mut envoy = Self {
            process: peers::spawn(command),
            admin,
        };
        let _ = &mut envoy.process;
        envoy
    }

    /// What its admin API answers; nothing while it is not there.
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
        let what = format!("{name} of Envoy\n{}", self.process.output());
        eventually(what, async || self.stat(name).await.is_some_and(&holds)).await;
    }

    pub(crate) fn output(&self) -> String {
        self.process.output()
    }
}

/// An address of loopback that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, peers::free_port()))
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
