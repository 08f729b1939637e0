use std::net::SocketAddr;

use testkit::client::Connection;
use testkit::origin::{NamedOrigin, Origin};
use testkit::peers;
use testkit::time::eventually;
use tokio::net::TcpListener;
use xds_control_plane::pipeline::{Pipeline, PipelineOptions};
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::sources::Sources;

use super::fleet::Envoy;

fn text(tcp: u16, http: u16, origin: &NamedOrigin) -> String {
    let address = origin.addr();
    format!(
        "listeners:
- {{name: raw, address: 127.0.0.1, port: {tcp}, tcp: {{cluster: db}}}}
- {{name: web, address: 127.0.0.1, port: {http}, http: {{}}}}
services:
- {{name: db, protocol: tcp, endpoints: ['{address}']}}
- {{name: wiki, domains: [wiki.example], endpoints: ['{address}']}}
"
    )
}

async fn answers(port: u16, host: &str, name: &str) -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let Ok(mut connection) = Connection::http1(address).await else {
        return false;
    };
    let request = connection.request_for(host, "GET", "/");
    let request = request.body(testkit::body::empty()).unwrap();
    connection
        .send(request)
        .await
        .is_ok_and(|answer| answer.status == 200 && answer.text() == name)
}

/// Cases X21 and X22: listeners for bytes and for requests, edited while everything runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_of_the_static_file_accept_and_follow_it() {
    let Some(envoy) = Envoy::find() else { return };
    let (one, other) = (Origin::named("one"), Origin::named("other"));
    let [tcp, http, moved] = [(); 3].map(|()| peers::free_port());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("static.yaml");
    std::fs::write(&path, text(tcp, http, &one)).unwrap();
    let pipeline = Pipeline::start(
        Sources::new().with_static_file(&path),
        PipelineOptions::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = XdsServer::new(pipeline.snapshots(), ServerOptions::default());
    tokio::spawn(server.serve(listener, std::future::pending()));
    let envoy = Envoy::start(&envoy, address).await;
    eventually("bytes arrive", || answers(tcp, "anything", "one")).await;
    eventually("requests arrive", || answers(http, "wiki.example", "one")).await;

    // A mistake leaves everything as it was.
    std::fs::write(&path, "listeners: [{name: raw}]\n").unwrap();
    let mut status = pipeline.status();
    let is_told =
        status.wait_for(|status| status.sources.iter().any(|source| source.failure.is_some()));
    testkit::time::within(testkit::time::GUARD, is_told)
        .await
        .expect("it is told")
        .unwrap();
    assert!(answers(tcp, "anything", "one").await);

    std::fs::write(&path, text(moved, http, &other)).unwrap();
    eventually("the listener has moved", || {
        answers(moved, "anything", "other")
    })
    .await;
    eventually("the endpoints have moved", || {
        answers(http, "wiki.example", "other")
    })
    .await;
    eventually("the old one is gone", || async {
        !answers(tcp, "anything", "other").await
    })
    .await;
    assert_eq!(envoy.stat("listener_manager.lds.update_rejected").await, 0);
    assert_eq!(envoy.stat("cluster_manager.cds.update_rejected").await, 0);
}
