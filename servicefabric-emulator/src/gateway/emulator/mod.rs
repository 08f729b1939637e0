//! A running cluster: its clock, its gateway, and the workloads of its replicas.

mod builder;
mod clock;
mod dialect;
mod driver;
mod responder;
mod shared;
mod workload;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::faults::Faults;
use super::server::{Connection, Gateway, Peer, Server};
use crate::cluster::Cluster;
use crate::hosting::Timestamp;

pub use self::builder::{Builder, StartError};
pub use self::clock::Time;
pub use self::dialect::Dialect;
pub use self::responder::Responder;
pub(crate) use self::shared::Shared;
pub use self::workload::{BoxFuture, Endpoints, Workload};

/// A cluster with its gateway, inside of this process.
///
/// Everything ends when it is dropped; [`shutdown`](Self::shutdown) ends it in order. It needs a tokio
/// runtime with time and I/O, and creates none itself.
#[derive(Debug)]
pub struct Emulator {
    shared: Arc<Shared>,
    gateway: Arc<Gateway>,
    server: Option<Server>,
    address: SocketAddr,
    secure: bool,
    stop: watch::Sender<bool>,
    driver: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Returns a builder of an emulator for this cluster.
    pub fn builder(topology: crate::topology::Topology) -> Builder {
        Builder::new(topology)
    }

    /// Returns the URL of the gateway, e.g. `http://127.0.0.1:19080`.
    pub fn endpoint(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.address())
    }

    /// The address that the gateway listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads or changes the cluster as it is now. All other callers wait meanwhile.
    ///
    /// If the cluster falls behind a running clock because of too many events, the call sees the state
    /// reached so far.
    ///
    /// ```
    /// # use servicefabric_emulator::{gateway::Emulator, topology::Topology};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let emulator = Emulator::builder(Topology::default()).listen("127.0.0.1:0").start().await?;
    /// let up = emulator.with_cluster(|cluster| cluster.node("_Node_0").is_some());
    /// assert!(up);
    /// emulator.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_cluster<R>(&self, look: impl FnOnce(&mut Cluster) -> R) -> R {
        self.shared.with_cluster(look)
    }

    /// Returns the injected faults.
    pub fn faults(&self) -> &Faults {
        self.shared.faults()
    }

    /// The present moment of the cluster.
    pub fn now(&self) -> Timestamp {
        self.shared.clock().now()
    }

    /// Moves the cluster's clock by this much at once, whatever the pace of time.
    ///
    /// All events that were due happen before this returns, except for the work of a [`Workload`], which
    /// begins afterwards.
    ///
    /// Blocks the thread meanwhile. The duration grows with the number of events: a year of a replica that
    /// moves every 100 ms takes hours. Other callers get turns. Nothing stops it early, so go far in steps,
    /// or use `POST /emulator/time/advance`, which is bounded.
    pub fn advance(&self, by: Duration) {
        self.shared.skip(by);
    }

    /// Serves the requests of a stream like those of an accepted connection, without TLS: a pipe in memory
    /// needs no port. Returns when either end closes.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a request in flight gets no response. Its changes of the cluster stay.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) {
        let gateway = Arc::clone(&self.gateway);
        let connection = Connection::alone(self.stop.subscribe());
        connection.serve(stream, Peer::default(), gateway).await;
    }

    /// Stops the gateway (calls in flight get five seconds), then the driver, and closes all workloads (which
    /// get ten).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, everything stops at once.
    pub async fn shutdown(mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown().await;
        }
        self.stop.send_replace(true);
        if let Some(driver) = self.driver.take()
            && let Err(error) = driver.await
        {
            tracing::error!(%error, "the driver ended badly");
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}
