//! The xDS server.
//!
//! It serves the [`Snapshot`] in a channel, over every way that Envoy supports, on one port:
//!
//! - aggregated streams and streams of one type, state of the world and incremental;
//! - the unary `Fetch` methods, `gRPC` health and reflection;
//! - polls over HTTP with JSON, `POST /v3/discovery:clusters` and the like.
//!
//! Until the channel holds a snapshot, nothing is served: streams wait, calls get a status that asks for a
//! retry, and the health is `NOT_SERVING`. A new Envoy therefore never gets an empty configuration from a
//! control plane that has just started.
//!
//! Each stream is a state machine that records the version of each resource of its client. Only differences
//! are sent, in an order in which no resource refers to a missing one. A resource that a client rejects is
//! not sent again until it has changed. [`ServerHandle::nodes`] shows the resources of each client, and its
//! rejections.

mod client_lines;
mod connection;
mod context;
mod descriptors;
mod fetch;
mod grpc;
mod listen;
mod metrics;
mod node_view;
mod nodes;
mod options;
mod protocol;
mod publish;
mod rest;
#[cfg(feature = "tls")]
mod tls;
mod unknown;
mod wire;

#[cfg(test)]
mod fixtures;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

use self::client_lines::ClientLines;
pub(crate) use self::client_lines::LOG_PAUSE;
use self::context::Context;
pub use self::descriptors::ENVOY_DESCRIPTORS;
pub(crate) use self::descriptors::resource_json;
use self::listen::{ConnectionLimits, Plain, Upgrade, accept};
use self::metrics::Metrics;
use self::node_view::Feed;
use self::nodes::Nodes;
pub use self::nodes::{
    NodeIdentity, NodeStatus, PollStatus, Rejection, StreamKind, StreamStatus, TypeStatus,
};
pub use self::options::ServerOptions;
use self::publish::Publisher;
#[cfg(feature = "tls")]
pub use self::tls::{ServerTls, ServerTlsError};
use self::wire::Blocks;
use crate::snapshot::Snapshot;

/// Serves the content of a channel to Envoys and other xDS clients.
#[derive(Debug)]
pub struct XdsServer {
    context: Arc<Context>,
    publisher: Publisher,
    stop: watch::Sender<bool>,
}

/// A handle for inspecting a running server: its clients and its snapshot. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    context: Arc<Context>,
}

/// The reason why a server ended.
#[derive(Debug, thiserror::Error)]
#[error("the xDS server cannot continue")]
pub struct ServeError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl XdsServer {
    /// Creates a server for the snapshots in `snapshots`, starting with the first one. When the sender is
    /// dropped, the last one stays.
    #[must_use]
    pub fn new(snapshots: watch::Receiver<Option<Arc<Snapshot>>>, options: ServerOptions) -> Self {
        let metrics = Arc::new(Metrics::default());
        let feed = Feed::new(options.removal_grace, options.addition_lead);
        let (publisher, views) = Publisher::new(snapshots, feed, Arc::clone(&metrics));
        let (stop, stopping) = watch::channel(false);
        let context = Arc::new(Context {
            identifier: Arc::from(options.identifier.as_str()),
            options,
            views,
            readiness: OnceLock::new(),
            stopping,
            nodes: Nodes::default(),
            metrics,
            blocks: Blocks::default(),
            lines: Arc::new(ClientLines::default()),
        });
        Self {
            context,
            publisher,
            stop,
        }
    }

    /// Reports readiness only while `readiness` is true, as in a
    /// [pipeline](crate::pipeline::Pipeline::readiness): a kept snapshot is served before. When the sender
    /// is dropped the last value stays. Only the first call has an effect.
    #[must_use]
    pub fn with_readiness(self, readiness: watch::Receiver<bool>) -> Self {
        let _ = self.context.readiness.set(readiness);
        self
    }

    /// Returns a handle for inspecting the server while it runs.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            context: Arc::clone(&self.context),
        }
    }

    /// Serves on `listener` until `shutdown` is ready. Then ends all streams, so that clients use another
    /// server, and waits for connections to end, for at most [`ServerOptions::drain`].
    ///
    /// The server runs in the caller's runtime, with one task for each connection. Dropping the future ends
    /// all streams at once.
    ///
    /// # Errors
    ///
    /// Returns an error if the descriptors of the API or the files of TLS are unusable, or if the transport
    /// fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        #[cfg(feature = "tls")]
        if let Some(files) = self.context.options.tls.clone() {
            let (followed, handshakes) =
                tls::FollowedFiles::new(files).map_err(|error| ServeError(error.into()))?;
            return tokio::select! {
                served = self.serve_over(listener, handshakes, shutdown) => served,
                never = followed.run() => match never {},
            };
        }
        self.serve_over(listener, Plain, shutdown).await
    }

    async fn serve_over(
        self,
        listener: TcpListener,
        upgrade: impl Upgrade,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Self {
            context,
            publisher,
            stop,
        } = self;
        let options = context.options.clone();
        let (health, health_service) = health_reporter();
        let routes = all_routes(&context, health_service)?;
        let mut stopped = stop.subscribe();
        let signal = async move {
            shutdown.await;
            stop.send_replace(true);
        };
        let limits = ConnectionLimits {
            all: options.connections,
            per_peer: options.connections_per_peer,
            opening: options.opening_timeout,
            keep_alive: options.ping_interval,
        };
        let serving = Server::builder()
            .accept_http1(true)
            .http2_keepalive_interval(Some(options.ping_interval))
            .http2_keepalive_timeout(Some(options.ping_timeout))
            .max_concurrent_streams(options.streams_per_connection)
            .serve_with_incoming_shutdown(
                routes.prepare(),
                accept(
                    listener,
                    limits,
                    upgrade,
                    Arc::clone(&context.metrics),
                    Arc::clone(&context.lines),
                ),
                signal,
            );
        let drained = async {
            let _ = stopped.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(options.drain).await;
        };
        tokio::select! {
            // First of all, so that readiness is not reported too early.
            biased;
            never = report_health(&context, &health) => match never {},
            result = serving => result.map_err(|error| ServeError(error.into())),
            () = drained => Ok(()),
            never = publisher.run() => match never {},
        }
    }
}

impl ServerHandle {
    /// Registers the server's metrics, with names that begin with `xds_`.
    pub fn register(&self, registry: &mut Registry) {
        self.context.metrics.register(registry);
    }

    /// Returns true if there is a snapshot that [counts as ready](XdsServer::with_readiness).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.context.is_ready()
    }

    /// The clients that are connected or have polled recently, by id, with the resources that they have.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        self.context.nodes.list()
    }

    /// Number of open streams.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.context.nodes.streams()
    }

    /// The served snapshot, once there is one.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        let view = self.context.view()?;
        Some(Arc::clone(view.snapshot()))
    }

    /// The age of the snapshot.
    #[must_use]
    pub fn snapshot_age(&self) -> Option<Duration> {
        self.context.metrics.age()
    }
}

fn all_routes(
    context: &Arc<Context>,
    health: HealthServer<impl Health>,
) -> Result<Routes, ServeError> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(ENVOY_DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let unusable = |error: tonic_reflection::server::Error| ServeError(error.into());
    let own = Router::new()
        .merge(grpc::routes(context))
        .merge(rest::routes(context));
    let routes = Routes::new(health)
        .add_service(reflection().build_v1().map_err(unusable)?)
        // Older versions of grpcurl use only this one.
        .add_service(reflection().build_v1alpha().map_err(unusable)?)
        .into_axum_router();
    Ok(Routes::from(routes.merge(own).fallback(unknown::answer)))
}

/// Waits for a change, or forever if there is no sender.
async fn news(readiness: Option<&mut watch::Receiver<bool>>) {
    if let Some(readiness) = readiness
        && readiness.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Reports by gRPC's health service whether there are resources to serve, for the server and for each service.
/// During shutdown it reports that there are none, so that balancers use another server.
async fn report_health(context: &Context, health: &HealthReporter) -> std::convert::Infallible {
    use tonic_health::ServingStatus;

    let mut views = context.views.clone();
    let mut readiness = context.readiness.get().cloned();
    let mut stopping = context.stopping.clone();
    loop {
        let stops = *stopping.borrow_and_update();
        views.mark_unchanged();
        if let Some(readiness) = &mut readiness {
            readiness.mark_unchanged();
        }
        let status = match context.is_ready() && !stops {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        for service in std::iter::once("").chain(grpc::SERVICES) {
            health.set_service_status(service, status).await;
        }
        if stops {
            std::future::pending::<()>().await;
        }
        tokio::select! {
            // It never goes back to nothing.
            changed = views.changed(), if status == ServingStatus::NotServing => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            () = news(readiness.as_mut()), if status == ServingStatus::NotServing => {}
            changed = stopping.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}
