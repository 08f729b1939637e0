//! The command that serves until it is stopped.

use std::net::SocketAddr;
use std::sync::Arc;

use program_kit::{Failure, Logging, Stop};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use xds_control_plane::admin::Admin;
use xds_control_plane::pipeline::Pipeline;
use xds_control_plane::server::XdsServer;

use super::{cli, load, screen};

pub(super) fn run(options: &cli::Serve) -> Result<(), Failure> {
    Logging::new("info", "info,xds=debug").start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}")))?;
    let result = runtime.block_on(serve(options));
    // Hanging reads of sources are no longer of use.
    runtime.shutdown_background();
    result
}

async fn serve(options: &cli::Serve) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let config = load::config(&options.config)?;
    let sources = load::sources(&config).await?;
    let listener = bind(config.listen, "listen").await?;
    let admin_listener = bind(config.admin, "admin").await?;
    let pipeline = Pipeline::start(sources, config.pipeline());
    let server = XdsServer::new(
        pipeline.snapshots(),
        config
            .server()
            .with_identifier(concat!("xds-control-plane/", env!("CARGO_PKG_VERSION"))),
    )
    .with_readiness(pipeline.readiness());
    let address = listener.local_addr().unwrap_or(config.listen);
    if config.tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(target: "xds::server", %address, "xDS is served without TLS: every client that reaches this address \
            gets all resources; add `tls` to the configuration");
    }
    screen::show(&config, address)?;
    let told = tokio::spawn(screen::tell(pipeline.status(), pipeline.snapshots()));
    let shutdown = async move {
        stop.asked().await;
        tracing::info!(target: "xds::server", "stopping; again to stop at once");
    };
    let mut registry = Registry::default();
    let handle = server.handle();
    handle.register(&mut registry);
    pipeline.register(&mut registry);
    let admin = Admin::builder(handle, registry).quarantine(Arc::new(pipeline.status()));
    let hosts = config.admin_hosts.iter();
    let admin = hosts.fold(admin, |admin, host| admin.host(host)).build();
    let admin = tokio::spawn(admin.serve(admin_listener));
    let served = server.serve(listener, shutdown).await;
    admin.abort();
    told.abort();
    pipeline.stop().await;
    served.map_err(|error| Failure::from_error(&error))
}

async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(format!("{address} cannot be listened on: {error}; choose another with `{key}` in the configuration"))
    })
}
