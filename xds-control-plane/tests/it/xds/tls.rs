//! The server over TLS: our own client, and a real Envoy.

use std::net::SocketAddr;
use std::path::Path;

use discovery_core::ConfigProvider;
use discovery_xds::{Mode, TlsOptions, XdsDiscoverer, XdsOptions};
use serde_json::{Value, json};
use testkit::certs::{Alpn, CertificateAuthority, PemFiles};
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::time::{eventually, guarded};
use tokio::net::TcpStream;
use xds_control_plane::server::{ServerOptions, ServerTls};

use crate::xds::support::Running;
use crate::xds::support::envoy::{Envoy, Place, Way};
use crate::xds::support::resources::Plan;

/// Certificates of a fleet: the control plane's, and one of its clients.
struct Fleet {
    authority: CertificateAuthority,
    server: PemFiles,
    client: PemFiles,
    client_ca: std::path::PathBuf,
    server_ca: std::path::PathBuf,
}

impl Fleet {
    fn new() -> Self {
        let authority = CertificateAuthority::new("fleet");
        let server = authority.issue(&["xds.test"]).write_pem();
        let client = authority.issue_client("edge-1").write_pem();
        Self {
            client_ca: server.add_authority(&authority),
            server_ca: client.add_authority(&authority),
            authority,
            server,
            client,
        }
    }

    fn options(&self) -> ServerOptions {
        let tls = ServerTls::new(self.server.certificate(), self.server.key());
        ServerOptions::default().with_tls(tls.with_client_ca(&self.client_ca))
    }
}

fn obeying(server: SocketAddr, mode: Mode, tls: TlsOptions) -> impl ConfigProvider {
    let options = XdsOptions::default()
        .with_servers(vec![format!("https://{server}")])
        .with_mode(mode)
        .with_tls(tls.with_server_name("xds.test"));
    XdsDiscoverer::new(options).unwrap().runner().start()
}

fn plan() -> Plan {
    Plan::default().service("svc", &["127.0.0.1:1".parse().unwrap()])
}

#[tokio::test]
async fn a_client_of_the_family_shows_its_certificate_and_is_served() {
    let fleet = Fleet::new();
    let server = Running::with(plan().snapshot(), fleet.options()).await;
    for mode in [Mode::Delta, Mode::StateOfTheWorld] {
        let tls = TlsOptions::default()
            .with_ca_file(&fleet.server_ca)
            .with_certificate(fleet.client.certificate(), fleet.client.key());
        let provider = obeying(server.address, mode, tls);
        let mut states = provider.subscribe();
        let served = states.wait_for(|state| {
            let config = state.config.as_ref();
            config.is_some_and(|config| config.clusters.len() == 1)
        });
        guarded("the cluster", served).await.unwrap();
    }
}

#[tokio::test]
async fn who_shows_no_certificate_of_the_fleet_is_not_served() {
    let fleet = Fleet::new();
    let server = Running::with(plan().snapshot(), fleet.options()).await;
    let stranger = CertificateAuthority::new("others")
        .issue_client("x")
        .write_pem();
    let trusting = || TlsOptions::default().with_ca_file(&fleet.server_ca);
    for tls in [
        trusting(),
        trusting().with_certificate(stranger.certificate(), stranger.key()),
    ] {
        let provider = obeying(server.address, Mode::Delta, tls);
        let mut states = provider.subscribe();
        let failing = states.wait_for(|state| state.status.last_error.is_some());
        let failing = guarded("an error", failing).await.unwrap().clone();
        assert!(failing.config.is_none());
    }
    // Neither is who speaks without TLS.
    let mut plain = Connection::http1(server.address).await.unwrap();
    assert!(plain.get("/").await.is_err());
    assert!(server.handle.nodes().is_empty());
}

/// A slow handshake does not delay others.
#[tokio::test]
async fn handshakes_do_not_wait_for_each_other() {
    let fleet = Fleet::new();
    let server = Running::with(plan().snapshot(), fleet.options()).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let identity = fleet.authority.issue_client("edge-2");
    let config = fleet.authority.client_config_with(&identity, Alpn::Http1);
    let mut connection = Connection::tls(server.address, "xds.test", config)
        .await
        .unwrap();
    // The path does not exist; gRPC reports that in a header.
    connection.get("/").await.unwrap();
    drop(silent);
}

fn file(path: &Path) -> Value {
    json!({ "filename": path })
}

/// Aggregated and by polls, with certificates on both sides.
#[tokio::test]
async fn an_envoy_with_a_certificate_is_served() {
    let Some(program) = Envoy::find() else { return };
    let fleet = Fleet::new();
    let origin = Origin::named("origin");
    let context =
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
    let socket = json!({ "name": "envoy.transport_sockets.tls", "typed_config": {
        "@type": context, "sni": "xds.test",
        "common_tls_context": {
            "tls_certificates": [{
                "certificate_chain": file(fleet.client.certificate()), "private_key": file(fleet.client.key()),
            }],
            "validation_context": {
                "trusted_ca": file(&fleet.server_ca),
                "match_typed_subject_alt_names": [{ "san_type": "DNS", "matcher": { "exact": "xds.test" } }],
            },
        },
    } });
    for way in [Way::AggregatedDelta, Way::Rest] {
        let place = Place::new();
        let plan = Plan::default().service("svc", &[origin.addr()]);
        let server = Running::with(plan.listen(place.listener()).snapshot(), fleet.options()).await;
        let socket = Some(socket.clone());
        let envoy = Envoy::start_with(&program, place, way, server.address, socket);
        envoy
            .eventually("svc is served", async || {
                let Ok(mut connection) = Connection::http1(place.listener()).await else {
                    return false;
                };
                let request = connection.request_for("svc.example", "GET", "/");
                let request = request.body(testkit::body::empty()).unwrap();
                (connection.send(request).await).is_ok_and(|answer| answer.text() == "origin")
            })
            .await;
        eventually("it is known", async || !server.handle.nodes().is_empty()).await;
    }
}
