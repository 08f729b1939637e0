//! The output for people.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use program_kit::Failure;
use tokio::sync::watch;
use xds_control_plane::admin::WarningEntry;
use xds_control_plane::options::{Config, RegistrySection};
use xds_control_plane::pipeline::PipelineStatus;
use xds_control_plane::snapshot::{ResourceType, Snapshot};

/// Prints the served addresses and sources, and commands to try, to standard error: standard output is for
/// machines.
pub(super) fn show(config: &Config, address: SocketAddr) -> Result<(), Failure> {
    let registry = match &config.registry {
        Some(RegistrySection::File(path)) => format!("the file {}", path.display()),
        Some(RegistrySection::Http { url, .. }) => format!(
            "{}://{}{}",
            url.scheme(),
            url.host_str().unwrap_or_default(),
            url.path()
        ),
        None => "none".to_owned(),
    };
    let consul = config
        .consul
        .as_ref()
        .map_or("none", |consul| &consul.consul.address);
    let fixed = match &config.static_file {
        Some(path) => format!("the file {}", path.display()),
        None => "none".to_owned(),
    };
    let more = [
        config
            .providers
            .service_fabric
            .is_some()
            .then_some("Service Fabric"),
        config.providers.serf.is_some().then_some("Serf"),
        (!config.providers.files.is_empty()).then_some("files of gateways"),
    ];
    let more: Vec<_> = more.into_iter().flatten().collect();
    let more = match more.is_empty() {
        true => "none".to_owned(),
        false => more.join(", "),
    };
    let service = "envoy.service";
    let node = r#"{"node":{"cluster":"vertis-cluster","id":"wtf"}}"#;
    let mut out = io::stderr().lock();
    writeln!(
        out,
        r#"xds-control-plane {version}
  xDS v3    {address} (gRPC: aggregated and separate streams, Fetch; REST: POST /v3/discovery:…; reflection, health)
  admin     http://{admin}/api/v1/overview  /api/v1/quarantine  /api/v1/warnings  /api/v1/nodes  /metrics
  registry  {registry}
  Consul    {consul}
  static    {fixed}
  others    {more}
  Envoys    name the cluster with this address `{xds}` and ask for the routes `{routes}`

Try:
  grpcurl -plaintext -d '{node}' {address} {service}.cluster.v3.ClusterDiscoveryService.FetchClusters | jq '.resources[].name'
  grpcurl -plaintext -d '{node}' {address} {service}.route.v3.RouteDiscoveryService.FetchRoutes | jq '.resources[0].virtualHosts[].domains'
  curl -s http://{address}/v3/discovery:endpoints -d '{node}' | jq

Ctrl-C stops it.
"#,
        version = env!("CARGO_PKG_VERSION"),
        admin = config.admin,
        xds = config.xds_cluster,
        routes = config.route_config,
    )
    .map_err(|error| Failure::new(format!("standard error cannot be written: {error}")))
}

/// Prints a line for each relevant event, while it is polled.
pub(super) async fn tell(
    mut status: watch::Receiver<Arc<PipelineStatus>>,
    mut snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
) {
    let mut said = BTreeSet::new();
    let mut config = None;
    loop {
        let now: BTreeSet<_> = lines(&status.borrow_and_update()).collect();
        for line in now.difference(&said) {
            tracing::warn!(target: "xds::server", "{line}");
        }
        for line in said.difference(&now) {
            tracing::info!(target: "xds::server", "resolved: {line}");
        }
        said = now;
        if let Some(snapshot) = &*snapshots.borrow_and_update() {
            let count = |kind| snapshot.resources(kind).len();
            let versions = [
                ResourceType::Cluster,
                ResourceType::Listener,
                ResourceType::Route,
            ]
            .map(|kind| snapshot.resources(kind).version());
            if config != Some(versions) {
                config = Some(versions);
                tracing::info!(
                    target: "xds::server",
                    clusters = count(ResourceType::Cluster),
                    listeners = count(ResourceType::Listener),
                    routes = %snapshot.resources(ResourceType::Route).version(),
                    "new configuration is served"
                );
            }
        }
        tokio::select! {
            changed = status.changed() => if changed.is_err() { return },
            changed = snapshots.changed() => if changed.is_err() { return },
        }
    }
}

fn lines(status: &PipelineStatus) -> impl Iterator<Item = String> {
    status.findings().into_iter().map(|finding| {
        let WarningEntry {
            owner,
            code,
            message,
        } = finding;
        format!("{owner}: {message} ({code})")
    })
}
