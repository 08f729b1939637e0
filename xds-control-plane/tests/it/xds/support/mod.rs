//! Shared parts of the tests.

pub(crate) mod envoy;
pub(crate) mod log;
pub(crate) mod resources;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use xds_control_plane::server::{ServerHandle, ServerOptions, XdsServer};
use xds_control_plane::snapshot::Snapshot;

/// A server that runs, and what it serves.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    snapshots: watch::Sender<Option<Arc<Snapshot>>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(snapshot: impl Into<Option<Snapshot>>) -> Self {
        Self::with(snapshot, ServerOptions::default()).await
    }

    pub(crate) async fn with(
        snapshot: impl Into<Option<Snapshot>>,
        options: ServerOptions,
    ) -> Self {
        Self::with_readiness(snapshot, options, None).await
    }

    pub(crate) async fn with_readiness(
        snapshot: impl Into<Option<Snapshot>>,
        options: ServerOptions,
        readiness: Option<watch::Receiver<bool>>,
    ) -> Self {
        let (snapshots, receiver) = watch::channel(snapshot.into().map(Arc::new));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = XdsServer::new(receiver, options);
        let server = match readiness {
            Some(readiness) => server.with_readiness(readiness),
            None => server,
        };
        let handle = server.handle();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            server.serve(listener, shutdown).await.unwrap();
        });
        Self {
            address,
            handle,
            snapshots,
            stop: Some(stop),
            task,
        }
    }

    pub(crate) fn publish(&self, snapshot: Snapshot) {
        self.snapshots.send_replace(Some(Arc::new(snapshot)));
    }

    /// Stops it, and waits for its end.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        testkit::time::guarded("the server's end", &mut self.task)
            .await
            .unwrap();
    }

    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        endpoint.connect().await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
