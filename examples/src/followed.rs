//! A proxy that follows a source.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use discovery_core::{Merge, Merged, Runner};
use http::Method;
use proxy_model::Snapshot;
use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, Server, ServerHandle};

use crate::{Answer, Failure, get, send};

/// A proxy on its own port that follows a source.
#[derive(Debug)]
pub struct Followed {
    proxy: Proxy,
    address: SocketAddr,
    server: ServerHandle,
    patience: Duration,
    // The source lives as long as the proxy.
    _merged: Merged,
}

impl Followed {
    /// Starts the proxy. Waits for changes at most for `patience`.
    ///
    /// # Errors
    ///
    /// Fails if no port is free.
    pub async fn start(source: Runner, patience: Duration) -> Result<Self, Failure> {
        let merged = Merge::new().provider(source.start()).start();
        let (proxy, driver) = Proxy::builder().snapshots(merged.snapshots()).build()?;
        tokio::spawn(driver);
        let server = Server::for_proxy(&proxy)
            .with_listener(Listener::http("127.0.0.1:0".parse()?))
            .bind()?;
        let address = server.local_addrs()[0];
        Ok(Self {
            proxy,
            address,
            server: server.start()?,
            patience,
            _merged: merged,
        })
    }

    /// The address of the proxy.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the proxy serves a configuration that fulfils a condition. Prints the duration.
    ///
    /// # Errors
    ///
    /// Fails at the time limit.
    pub async fn until(
        &self,
        what: &str,
        is_so: impl Fn(&Snapshot) -> bool,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let mut generations = self.proxy.generations();
        let wait = generations.wait_for(|_| is_so(&self.proxy.snapshot()));
        tokio::time::timeout(self.patience, wait)
            .await
            .map_err(|_| format!("the proxy had not {what} after {:?}", self.patience))??;
        println!("   the proxy has {what} after {:.1?}", started.elapsed());
        Ok(())
    }

    /// Sends a request and prints the response.
    ///
    /// # Errors
    ///
    /// Fails as [`get`] does.
    pub async fn get(&self, path: &str) -> Result<Answer, Failure> {
        print!("   ");
        get(self.address, path).await
    }

    /// Counts the instances that serve a hundred requests, by the first word of each response.
    ///
    /// # Errors
    ///
    /// Fails as [`send`] does.
    pub async fn shares(&self) -> Result<BTreeMap<String, u32>, Failure> {
        let mut shares = BTreeMap::new();
        for _ in 0..100 {
            let answer = send(self.address, Method::GET, "/").await?;
            let name = answer.text.split(':').next().unwrap_or_default();
            *shares.entry(name.to_owned()).or_default() += 1;
        }
        println!("   100 requests: {shares:?}");
        Ok(shares)
    }

    /// Finishes the requests in flight, and stops.
    pub async fn stop(self) {
        self.server.shutdown(Duration::from_secs(5)).await;
    }
}
