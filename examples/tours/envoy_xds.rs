//! cargo run --package tours --example envoy_xds
//!
//! A control plane for Envoy: a registry in a file lists the services, a static file has one of
//! their addresses, and a real Envoy (`cargo xtask peers envoy` fetches it) routes requests.
//! Without Envoy the resources are printed.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use examples::{Failure, send_to_host, start_service_on, wait_unless_once};
use testkit::peers::{self, PeerProcess};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use xds_control_plane::pipeline::{Pipeline, PipelineOptions};
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::snapshot::ResourceType;
use xds_control_plane::sources::{FileRegistry, Sources};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (registry, fixed) = (
        folder.path().join("registry.yaml"),
        folder.path().join("static.yaml"),
    );
    let shop = start_service_on([127, 0, 0, 1].into(), "shop").await?;
    let wiki = start_service_on([127, 0, 0, 1].into(), "wiki").await?;
    std::fs::write(&registry, "services: []\n")?;
    std::fs::write(&fixed, services(&[("shop", shop)]))?;

    let sources = Sources::new()
        .with_registry(FileRegistry::new(&registry))
        .with_static_file(&fixed);
    let pipeline = Pipeline::start(sources, PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    snapshots.wait_for(Option::is_some).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let plane = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = XdsServer::new(pipeline.snapshots(), ServerOptions::default());
    let serving = tokio::spawn(server.serve(listener, async {
        let _ = stopped.await;
    }));
    println!("xDS is served at {plane}; what it serves:");
    for kind in ResourceType::MAKE_BEFORE_BREAK {
        let snapshot = snapshots.borrow().clone().unwrap_or_default();
        let names: Vec<_> = snapshot
            .resources(kind)
            .iter()
            .map(|resource| resource.name().to_string())
            .collect();
        println!("  {kind}: {}", names.join(", "));
    }

    if let Some((_envoy, front)) = start_envoy(folder.path(), plane).await? {
        println!(
            "curl -H 'Host: shop.example' http://{front}/    # Envoy asks {plane} where that is"
        );
        until(front, "shop.example", 200).await?;
        until(front, "wiki.example", 404).await?;
        println!("a service is added to {}", fixed.display());
        std::fs::write(&fixed, services(&[("shop", shop), ("wiki", wiki)]))?;
        until(front, "wiki.example", 200).await?;
        println!("a mistake is made in it: what was served goes on");
        std::fs::write(&fixed, "services: [{nam: shop}]\n")?;
        let mut status = pipeline.status();
        let told = status
            .wait_for(|status| status.sources.iter().any(|source| source.failure.is_some()))
            .await?;
        for failure in told
            .sources
            .iter()
            .filter_map(|source| source.failure.as_ref())
        {
            println!("  {failure}");
        }
        drop(told);
        until(front, "wiki.example", 200).await?;
        wait_unless_once().await?;
    }
    drop(stop);
    serving.await??;
    Ok(())
}

/// A static file with these services.
fn services(services: &[(&str, SocketAddr)]) -> String {
    let services = services.iter().map(|(name, address)| {
        format!("- {{name: {name}, domains: [{name}.example], endpoints: ['{address}']}}\n")
    });
    format!("services:\n{}", services.collect::<String>())
}

/// Retries until the response has this status.
async fn until(front: SocketAddr, host: &str, status: u16) -> Result<(), Failure> {
    loop {
        if let Ok(answer) = send_to_host(front, host, "/").await
            && answer.status.as_u16() == status
        {
            println!("{host} → {} {}", answer.status, answer.text.trim_end());
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Starts an Envoy that gets everything but its listener from the control plane; `None` if it is
/// not installed.
async fn start_envoy(
    folder: &Path,
    plane: SocketAddr,
) -> Result<Option<(PeerProcess, SocketAddr)>, Failure> {
    let Some(envoy) = peers::find("envoy") else {
        return Ok(None);
    };
    let front = SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
    let bootstrap = BOOTSTRAP
        .replace("PLANE", &plane.port().to_string())
        .replace("FRONT", &front.port().to_string());
    let path = folder.join("envoy.yaml");
    std::fs::write(&path, bootstrap)?;
    let mut command = envoy.command();
    command.arg("-c").arg(&path).args([
        "--concurrency",
        "1",
        "--use-dynamic-base-id",
        "-l",
        "error",
    ]);
    Ok(Some((peers::spawn(command), front)))
}

const BOOTSTRAP: &str = r#"
node: {id: edge-1, cluster: example}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, set_node_on_first_message_only: true, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: xds
    type: STATIC
    load_assignment:
      cluster_name: xds
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PLANE}}}}]}]
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
  listeners:
  - name: http
    address: {socket_address: {address: 127.0.0.1, port_value: FRONT}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http
          rds: {route_config_name: main, config_source: {ads: {}, resource_api_version: V3}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
"#;
