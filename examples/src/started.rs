//! A proxy with its own server, for examples of one feature.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::Snapshot;
use proxy_model::config::ProxyConfig;
use proxy_runtime::server::{Listener, Server, ServerHandle};
use proxy_runtime::{Proxy, ProxyBuilder};

use crate::Failure;

/// A proxy on a free port of this machine.
#[derive(Debug)]
pub struct Started {
    /// The proxy, for instance for an admin page.
    pub proxy: Proxy,
    /// The address of its server.
    pub address: SocketAddr,
    server: ServerHandle,
}

impl Started {
    /// Compiles the configuration with the names that `builder` has registered, and serves it.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is invalid, or if no port is free.
    pub fn new(builder: ProxyBuilder, config: &str) -> Result<Self, Failure> {
        let config = ProxyConfig::from_json(config)?;
        let (snapshot, _) = Snapshot::compile(config, &builder.compile_options())?;
        let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build()?;
        tokio::spawn(driver);
        let server = Server::for_proxy(&proxy)
            .with_listener(Listener::http("127.0.0.1:0".parse()?))
            .bind()?;
        let address = server.local_addrs()[0];
        let server = server.start()?;
        Ok(Self {
            proxy,
            address,
            server,
        })
    }

    /// Waits for requests in flight, up to 5 s, and stops.
    pub async fn stop(self) {
        self.server.shutdown(Duration::from_secs(5)).await;
    }
}
