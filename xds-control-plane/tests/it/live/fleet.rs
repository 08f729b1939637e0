//! The fleet of the tests: two datacenters, services in them, a control plane, an Envoy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use discovery_consul::client::{ConsulClient, ConsulOptions, FollowOptions};
use discovery_consul::watch::{Datacenters, WatchOptions};
use serde_json::json;
use tempfile::TempDir;
use testkit::client::Connection;
use testkit::consul::{Consul, ConsulAgent};
use testkit::origin::{NamedOrigin, Origin};
use testkit::peers::{self, Peer, PeerProcess};
use testkit::time::eventually;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use xds_control_plane::pipeline::{Pipeline, PipelineOptions};
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::snapshot::Snapshot;
use xds_control_plane::sources::{ConsulSourceOptions, FileRegistry, Sources};

pub(crate) const SUFFIX: &str = "vrts-slb.test.vertis.yandex.net";

/// Two datacenters that know each other.
pub(crate) struct Datacenters2 {
    pub(crate) sas: ConsulAgent,
    pub(crate) vla: ConsulAgent,
}

impl Datacenters2 {
    pub(crate) async fn start() -> Option<Self> {
        let consul = Consul::find()?;
        let sas = consul.datacenter("sas").start().await;
        let vla = consul.datacenter("vla").join(&sas).start().await;
        sas.wait_for_datacenter("vla").await;
        vla.wait_for_datacenter("sas").await;
        Some(Self { sas, vla })
    }
}

/// A service that runs and is registered.
pub(crate) struct Instance {
    pub(crate) origin: NamedOrigin,
    pub(crate) id: String,
}

/// Starts an instance that responds with its name, and registers it at an agent.
pub(crate) async fn instance(
    agent: &ConsulAgent,
    service: &str,
    name: &str,
    tags: &[&str],
) -> Instance {
    let origin = Origin::named(name);
    let id = format!("{service}-{name}");
    let instance = Instance { origin, id };
    register(agent, service, &instance, tags).await;
    instance
}

/// Registers an instance, or replaces its registration.
pub(crate) async fn register(
    agent: &ConsulAgent,
    service: &str,
    instance: &Instance,
    tags: &[&str],
) {
    let address = instance.origin.addr();
    let body = json!({
        "Name": service, "ID": instance.id, "Address": address.ip().to_string(), "Port": address.port(), "Tags": tags,
        "Check": {"CheckID": instance.id, "TTL": "600s", "Status": "passing"},
    });
    let answer = agent
        .call("PUT", "/v1/agent/service/register", &body.to_string())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Lets the check of an instance pass or fail.
pub(crate) async fn check(agent: &ConsulAgent, instance: &Instance, verdict: &str) {
    let path = format!("/v1/agent/check/{verdict}/{}", instance.id);
    assert_eq!(agent.call("PUT", &path, "").await.status, 200);
}

/// A control plane in this process.
pub(crate) struct ControlPlane {
    pub(crate) address: SocketAddr,
    pub(crate) pipeline: Pipeline,
    registry: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    _folder: TempDir,
}

impl ControlPlane {
    /// In the datacenter of the agent.
    pub(crate) async fn start(agent: &ConsulAgent, registry: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.yaml");
        std::fs::write(&path, registry).unwrap();
        let client = ConsulOptions::default()
            .with_address(agent.url())
            .with_request_timeout(Duration::from_secs(3));
        // A query is answered since there is news, and not since a wait is over: that is longer than any guard.
        let follow = FollowOptions::default()
            .with_wait(Duration::from_secs(600))
            .with_backoff(Duration::from_millis(100))
            .with_backoff_max(Duration::from_secs(1));
        let mut options = ConsulSourceOptions::default();
        options.watch = WatchOptions::default()
            .with_datacenters(Datacenters::All)
            .with_follow(follow);
        let sources = Sources::new()
            .with_registry(FileRegistry::new(&path))
            .with_consul(ConsulClient::new(client).unwrap(), options);
        let mut options = PipelineOptions::default();
        options.translate.domain_suffix = SUFFIX.into();
        let pipeline = Pipeline::start(sources, options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = XdsServer::new(pipeline.snapshots(), ServerOptions::default());
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(server.serve(listener, async {
            let _ = stopped.await;
        }));
        Self {
            address,
            pipeline,
            registry: path,
            stop: Some(stop),
            _folder: folder,
        }
    }

    /// Rewrites the registry.
    pub(crate) fn registry(&self, text: &str) {
        std::fs::write(&self.registry, text).unwrap();
    }

    pub(crate) fn snapshots(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.pipeline.snapshots()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

/// An Envoy that gets its whole configuration except the listener from a control plane.
pub(crate) struct Envoy {
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    process: PeerProcess,
    _folder: TempDir,
}

impl Envoy {
    pub(crate) fn find() -> Option<Peer> {
        peers::find("envoy")
    }

    pub(crate) async fn start(peer: &Peer, control_plane: SocketAddr) -> Self {
        let loopback = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let (address, admin) = (loopback(peers::free_port()), loopback(peers::free_port()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("envoy.json");
        std::fs::write(&path, bootstrap(address, admin, control_plane).to_string()).unwrap();
        let mut command = peer.command();
        command.arg("-c").arg(&path).args([
            "--concurrency",
            "1",
            "--use-dynamic-base-id",
            "-l",
            "warning",
        ]);
        let envoy = Self {
            address,
            admin,
            process: peers::spawn(command),
            _folder: folder,
        };
        eventually("Envoy is live", || async {
            let ready = envoy.admin("/ready").await;
            ready.is_some_and(|text| text.trim() == "LIVE")
        })
        .await;
        envoy
    }

    /// Returns the response of the admin interface.
    pub(crate) async fn admin(&self, path: &str) -> Option<String> {
        let mut connection = Connection::http1(self.admin).await.ok()?;
        let answer = connection.get(path).await.ok()?;
        (answer.status == 200).then(|| answer.text())
    }

    /// A counter or gauge.
    pub(crate) async fn stat(&self, name: &str) -> u64 {
        let text = self
            .admin(&format!("/stats?filter=^{}$", name.replace('.', "\\.")))
            .await
            .unwrap_or_default();
        text.trim()
            .rsplit(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or_default()
    }

    /// Makes a request for a domain: returns the status, and the service's response, which is its name.
    pub(crate) async fn get(&self, domain: &str, header: Option<(&str, &str)>) -> (u16, String) {
        let mut connection = Connection::http1(self.address)
            .await
            .expect("Envoy accepts");
        let mut request = connection.request_for(domain, "GET", "/");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
        let answer = connection.send(request).await.expect("Envoy answers");
        (answer.status.as_u16(), answer.text())
    }

    /// Waits until a request for a domain has this result.
    pub(crate) async fn until(&self, domain: &str, expected: (u16, &str)) {
        let what = format!(
            "{domain} answers {expected:?}; Envoy says: {}",
            self.process.output()
        );
        eventually(what, || async {
            let (status, text) = self.get(domain, None).await;
            (status, text.as_str()) == expected
        })
        .await;
    }
}

fn bootstrap(
    address: SocketAddr,
    admin: SocketAddr,
    control_plane: SocketAddr,
) -> serde_json::Value {
    let socket = |address: SocketAddr| json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}});
    let ads = json!({"ads": {}, "resource_api_version": "V3"});
    json!({
        "node": {"id": "wtf", "cluster": "vertis-cluster"},
        "admin": {"address": socket(admin)},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "GRPC", "transport_api_version": "V3",
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}],
            },
            "cds_config": ads, "lds_config": ads,
        },
        "static_resources": {
            "clusters": [{
                "name": "xds", "type": "STATIC", "connect_timeout": "1s",
                "load_assignment": {"cluster_name": "xds", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": socket(control_plane)}}]}]},
                "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                    "explicit_http_config": {"http2_protocol_options": {}},
                }},
            }],
            "listeners": [{
                "name": "front", "address": socket(address),
                "filter_chains": [{"filters": [{
                    "name": "envoy.filters.network.http_connection_manager",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                        "stat_prefix": "front",
                        "rds": {"route_config_name": "main", "config_source": ads},
                        "http_filters": [{
                            "name": "envoy.filters.http.router",
                            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
                        }],
                    },
                }]}],
            }],
        },
    })
}
