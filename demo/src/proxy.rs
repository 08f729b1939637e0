//! The proxy of the demo: the code that a program needs to embed the proxy with its own provider.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{Merge, Merged, Runner};
use proxy_model::Snapshot;
use proxy_runtime::Proxy;
use proxy_runtime::admin::Admin;
use proxy_runtime::server::{Listener, Server, ServerHandle};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::cli::Options;
use crate::failure::Failure;

/// The time that requests in flight have to end when the demo stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A running proxy for the services of a provider, and its admin page.
pub(crate) struct RunningProxy {
    proxy: Proxy,
    server: ServerHandle,
    admin: Admin,
    admin_address: SocketAddr,
    /// The proxy's driver and the admin page. They end when this is dropped.
    tasks: JoinSet<()>,
}

impl RunningProxy {
    /// Binds both addresses, starts discovery, and serves once there is a first configuration.
    pub(crate) async fn start(options: &Options, runner: Runner) -> Result<Self, Failure> {
        let builder = Proxy::builder();
        // The runner checks names of policies and layers against those that this proxy has.
        let compile = builder.compile_options();
        let runner = runner.compile_options(compile.clone());
        let merged = Merge::new()
            .compile_options(compile)
            .provider(runner.start())
            .start();
        let merged = Arc::new(merged);
        let (proxy, driver) = builder
            .snapshots(merged.snapshots())
            .build()
            .map_err(|error| Failure::of("the proxy cannot be built", &error))?;

        let server = Server::for_proxy(&proxy)
            .with_listener(Listener::http(options.listen))
            .bind()
            .map_err(|error| Failure::of_address(options.listen, "listen", &error))?;
        let admin_socket = TcpListener::bind(options.admin)
            .await
            .map_err(|error| Failure::of_address(options.admin, "admin", &error))?;
        let admin_address = admin_socket
            .local_addr()
            .map_err(|error| Failure::of_address(options.admin, "admin", &error))?;
        let admin = Admin::builder(proxy.clone())
            .merged(Arc::clone(&merged))
            .server(&server)
            .build();

        let mut tasks = JoinSet::new();
        tasks.spawn(driver);
        tasks.spawn({
            let admin = admin.clone();
            async move {
                admin.serve(admin_socket).await;
            }
        });
        wait_for_first(&proxy, &merged).await;
        let server = server
            .start()
            .map_err(|error| Failure::of("the server cannot start", &error))?;
        Ok(Self {
            proxy,
            server,
            admin,
            admin_address,
            tasks,
        })
    }

    /// The address of the proxy.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    /// The address of the admin page.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The configuration that is served.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.proxy.snapshot()
    }

    /// Stops accepting connections, waits for requests in flight up to a deadline, and ends the admin page.
    pub(crate) async fn shutdown(mut self) {
        self.admin.set_draining();
        let report = self.server.shutdown(DRAIN_TIMEOUT).await;
        self.tasks.shutdown().await;
        match report.cut {
            0 => eprintln!("stopped; every request in flight was answered"),
            cut => eprintln!("stopped; {cut} connections were cut at the deadline"),
        }
    }
}

/// Waits until the proxy has the first configuration, which is a moment after the merge.
async fn wait_for_first(proxy: &Proxy, merged: &Merged) {
    let first = merged.ready().await.snapshot.revision();
    let mut generations = proxy.generations();
    while proxy.snapshot().revision() != first {
        if generations.changed().await.is_err() {
            return;
        }
    }
}
