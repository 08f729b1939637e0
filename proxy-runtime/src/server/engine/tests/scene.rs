//! A client and a destination over memory, and a server between them.

use std::rc::Rc;
use std::sync::Arc;

use proxy_model::Snapshot;
use proxy_model::compiled::ClusterIndex;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::task::LocalSet;
use tower_layer::layer_fn;

use crate::filter::{Filter, FilterContext, Flow, RequestEdit, ResponseEdit};
use crate::fixtures::config;
use crate::layer::RouteService;
use crate::server::AccessLogSink;
use crate::server::Limits;
use crate::server::connection::{Transport, serve_cleartext};
use crate::server::handler::{Handler, ProxyHandler, Served, ServiceHandler};
use crate::server::metrics::ServerMetrics;
use crate::server::shared::WorkerShared;
use crate::upstream::{ConnectionRequest, Lease, Protocols, Scripted};
use crate::{ConnectionInfo, Proxy, ProxyService};

/// The time that a destination may be silent, in seconds.
pub(super) const ACTIVITY_TIMEOUT: u64 = 10;

/// A proxy for the destination at `url`, to which there may be one connection: that one goes on over `transport`,
/// and is held until it is given back.
pub(super) async fn connected(
    url: &str,
    transport: impl Scripted + 'static,
) -> (ProxyService, Lease) {
    connected_with(url, "", transport).await
}

/// The same for a route with these settings, among which may be the layer `pass`, and the filter `breaks`, which
/// fails at responses.
pub(super) async fn connected_with(
    url: &str,
    settings: &str,
    transport: impl Scripted + 'static,
) -> (ProxyService, Lease) {
    let (service, mut leases) = connected_over(url, settings, vec![transport]).await;
    (service, leases.remove(0))
}

/// The same with a connection over each of these.
pub(super) async fn connected_over(
    url: &str,
    settings: &str,
    transports: Vec<impl Scripted + 'static>,
) -> (ProxyService, Vec<Lease>) {
    let most = transports.len();
    let config = config(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}{settings}}}}},
            "Clusters":{{"c":{{"HttpClient":{{"MaxConnectionsPerServer":{most}}},
                "HttpRequest":{{"ActivityTimeout":"00:00:{ACTIVITY_TIMEOUT}"}},
                "Destinations":{{"d":{{"Address":"{url}"}}}}}}}}}}"#
    ));
    let builder = Proxy::builder()
        .layer("pass", layer_fn(|rest: RouteService| rest))
        .filter("breaks", Breaks);
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, _) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    let service = proxy.service();
    let generation = service.shared().load_full();
    let state = generation.cluster(ClusterIndex(0));
    let mut leases = Vec::new();
    for transport in transports {
        let wanted = ConnectionRequest {
            destination: &state.destinations()[0],
            upstream: generation.snapshot().clusters()[0].upstream(),
            client: state.client(),
            protocols: Protocols::Http1,
            announced: None,
            fresh: false,
            careful: false,
        };
        let mut lease = service.pool().acquire(wanted, None).await.unwrap();
        lease.raw().unwrap().io.replace(transport);
        leases.push(lease);
    }
    (service, leases)
}

struct Breaks;

impl Filter for Breaks {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        assert_ne!(head.status(), 200, "as the test wants");
    }
}

/// The client's end of a connection that takes `capacity` bytes before they are read.
pub(super) fn serve(service: ProxyService, capacity: usize) -> DuplexStream {
    serve_with(service, capacity, Limits::default())
}

/// The same for a server with limits of its own.
pub(super) fn serve_with(service: ProxyService, capacity: usize, limits: Limits) -> DuplexStream {
    let (near, far) = duplex(capacity);
    serve_by(far, ProxyHandler::new(service), worker(limits, None).0);
    near
}

/// Serves a client that is there already.
pub(super) fn serve_over(client: impl Transport, service: ProxyService) {
    let handler = ProxyHandler::new(service);
    serve_by(client, handler, worker(Limits::default(), None).0);
}

/// The client's end of a connection whose requests are forwarded over `http` types.
pub(super) fn serve_disguised(service: ProxyService, capacity: usize) -> DuplexStream {
    serve_disguised_with(service, capacity, Limits::default())
}

/// The same for a server with limits of its own.
pub(super) fn serve_disguised_with(
    service: ProxyService,
    capacity: usize,
    limits: Limits,
) -> DuplexStream {
    let (near, far) = duplex(capacity);
    serve_by(far, ServiceHandler(service), worker(limits, None).0);
    near
}

/// A worker without a thread, and what it counts.
pub(super) fn worker(
    limits: Limits,
    log: Option<Arc<dyn AccessLogSink>>,
) -> (Arc<WorkerShared>, ServerMetrics) {
    let metrics = ServerMetrics::new(1);
    let worker = WorkerShared::new(limits, 100, metrics.worker(0).clone(), log);
    (Arc::new(worker), metrics)
}

/// Serves a client by a worker.
pub(super) fn serve_by(client: impl Transport, handler: impl Handler, worker: Arc<WorkerShared>) {
    tokio::task::spawn_local(serve_cleartext(
        client,
        ConnectionInfo::new(([192, 0, 2, 7], 4711).into()),
        Rc::new(Served::new(handler)),
        worker.enter(),
        worker,
    ));
}

/// Reads a text up to and including `end`.
pub(super) async fn read_to(stream: &mut DuplexStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let byte = stream.read_u8().await;
        let text = String::from_utf8_lossy(&bytes);
        bytes.push(byte.unwrap_or_else(|error| panic!("{error} after {text:?}")));
    }
    String::from_utf8(bytes).unwrap()
}

pub(super) async fn local<F: Future>(test: F) -> F::Output {
    LocalSet::new().run_until(test).await
}
