//! One scene on one way.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy_model::compiled::ClusterIndex;
use testkit::faults::RefusingPort;
use testkit::raw::RawOrigin;
use tokio::io::{DuplexStream, duplex};
use tokio::task::spawn_local;
use tokio::time::{Instant, pause, sleep};

use super::super::lane;
use super::super::scene::ACTIVITY_TIMEOUT;
use super::client::Client;
use super::scene::{Connection, Content, LONGEST, Scene, Step};
use super::seen::{Cluster, Line, Seen, series};
use super::transport::{Destination, Upstream};
use crate::cluster::ClusterState;
use crate::fixtures::snapshot;
use crate::server::connection::serve_cleartext;
use crate::server::handler::{ProxyHandler, Served, ServiceHandler};
use crate::server::metrics::ServerMetrics;
use crate::server::shared::WorkerShared;
use crate::server::worker::runtime;
use crate::server::{AccessLogSink, AccessRecord};
use crate::upstream::{ConnectionRequest, Lease, Protocols};
use crate::{ConnectionInfo, Proxy, ProxyService};

/// Capacity of a connection in bytes.
const ROOM: usize = 256 * 1024;

/// Capacity of a connection that is not read.
const LITTLE_ROOM: usize = 1024;

/// The initial window of HTTP/2 (RFC 9113 section 6.9.2): so many bytes are handed to the client's stream.
const WINDOW: usize = 65_535;

/// The kind of forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// The byte path.
    Bytes,
    /// The path over `http` types.
    Types,
}

/// A way that a request may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) means: Means,
    pub(super) is_http2: bool,
}

/// Plays a scene on one way, until its request has ended and a while longer.
pub(super) fn play(scene: &Scene, way: Way) -> Seen {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        lane::take_raw();
        let mut stage = Stage::build(scene, way).await;
        // From here on all data are in memory, except those of a second connection.
        pause();
        stage.play().await;
        let seen = stage.look().await;
        let is_exchange = lane::take_raw() > 0;
        assert!(is_exchange, "{} on the way as {}", scene.name, way.name);
        seen
    })
}

/// The client, the destination, and the proxy between them.
struct Stage<'a> {
    scene: &'a Scene,
    service: ProxyService,
    origin: RawOrigin,
    _refusing: Option<RefusingPort>,
    client: Client,
    left: bool,
    destination: Destination,
    /// The only connection, if another request holds it.
    taken: Option<Lease>,
    server: ServerMetrics,
    log: Arc<Log>,
    sent: usize,
    /// Bytes that fit between the proxy and its client.
    room: usize,
    /// The time of the last step.
    last: Instant,
}

impl<'a> Stage<'a> {
    async fn build(scene: &'a Scene, way: Way) -> Self {
        let origin = second_connections(scene);
        let refusing = scene.has_refusing.then(RefusingPort::new);
        let service = service(scene, &origin, refusing.as_ref());
        let room = match scene.takes_request {
            true => ROOM,
            false => LITTLE_ROOM,
        };
        let (near, far) = duplex(room);
        let mut lease = connect(&service).await;
        let is_fresh = scene.connection != Connection::Reused;
        let transport = Upstream { io: far, is_fresh };
        lease.raw().unwrap().io.replace(transport);
        let taken = match scene.connection {
            Connection::Taken => Some(lease),
            Connection::Fresh | Connection::Reused => {
                lease.release(Instant::now());
                None
            }
        };
        let room = match scene.takes_response {
            true => ROOM,
            false => LITTLE_ROOM,
        };
        let (client, far) = duplex(room);
        let server = ServerMetrics::new(1);
        let log = Arc::<Log>::default();
        let worker = WorkerShared::new(
            scene.limits.clone(),
            100,
            server.worker(0).clone(),
            Some(Arc::<Log>::clone(&log)),
        );
        serve(far, service.clone(), way, Arc::new(worker));
        Self {
            scene,
            client: Client::new(client, scene, way.is_http2).await,
            service,
            origin,
            _refusing: refusing,
            left: false,
            destination: Destination::new(near, scene.takes_request),
            taken,
            server,
            log,
            sent: 0,
            room: match way.is_http2 {
                true => WINDOW,
                false => room,
            },
            last: Instant::now(),
        }
    }

    async fn play(&mut self) {
        quiet().await;
        for step in &self.scene.steps {
            self.last = Instant::now();
            self.take(*step).await;
            quiet().await;
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Asks => self.client.ask(self.scene).await,
            Step::Sends(bytes) => {
                self.sent += bytes;
                let is_last = self.scene.content == Content::Length(self.sent);
                self.client.send(bytes, is_last).await;
            }
            Step::Ends(trailers) => self.client.end(trailers).await,
            Step::Breaks => self.client.break_off().await,
            Step::Leaves => {
                self.left = true;
                self.client.leave();
            }
            Step::Vanishes => {
                self.left = true;
                self.client.vanish();
            }
            Step::Says(text) => self.destination.say(text.as_bytes()).await,
            Step::Fills(bytes) => self.destination.say(&vec![b'x'; bytes]).await,
            Step::Closes => self.destination.close().await,
            Step::SaysAndCloses(text) => {
                self.destination.say(text.as_bytes()).await;
                self.destination.close().await;
            }
            Step::Waits(seconds) => sleep(Duration::from_secs(seconds)).await,
        }
    }

    /// Waits for the end of the request, and returns the observations.
    async fn look(mut self) -> Seen {
        let metrics = self.service.shared().metrics();
        while metrics.active_requests.get() > 0 && self.last.elapsed() < LONGEST {
            sleep(Duration::from_millis(50)).await;
        }
        let after = self.last.elapsed();
        // What goes on behind that is given up in this time.
        sleep(Duration::from_secs(ACTIVITY_TIMEOUT + 5)).await;
        drop(self.taken.take());
        let destination = self.destination.look().await;
        let generation = self.service.shared().load_full();
        let state = generation.cluster(ClusterIndex(0));
        let cluster = Cluster::of(state);
        let server = self.server.counts();
        let active = metrics.active_requests.get();
        let lines = self.log.0.lock().clone();
        let route = series(generation.routes()[0].metrics().durations());
        Seen {
            answer: match self.left {
                true => None,
                false => Some(self.client.received().await),
            },
            after,
            destination,
            again: self.origin.traffic().requests(),
            lines,
            room: self.room,
            server,
            active,
            cluster,
            route,
        }
    }
}

/// Returns when all tasks wait: the paused clock advances only then.
pub(super) async fn quiet() {
    sleep(Duration::from_millis(1)).await;
}

/// The destination of second connections; the first connection is replaced.
fn second_connections(scene: &Scene) -> RawOrigin {
    let second = scene.second;
    RawOrigin::script(move |mut connection| async move {
        if connection.index() == 0 {
            return connection.hold().await;
        }
        connection.read_whole_request().await?;
        if let Some((after, text)) = second {
            sleep(Duration::from_secs(after)).await;
            connection.write_all(text).await?;
        }
        Ok(())
    })
}

fn service(scene: &Scene, origin: &RawOrigin, refusing: Option<&RefusingPort>) -> ProxyService {
    let first = refusing.map_or_else(String::new, |port| {
        format!(r#""a":{{"Address":"{}"}},"#, port.url())
    });
    let snapshot = snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}},
                "Transforms":[{{"ResponseHeader":"X-Failure","Set":"1","When":"Failure"}}]{}}}}},
            "Clusters":{{"c":{{"HttpClient":{{"MaxConnectionsPerServer":1}},
                "LoadBalancingPolicy":"RoundRobin",
                "HttpRequest":{{"ActivityTimeout":"00:00:{ACTIVITY_TIMEOUT}"}},
                "Destinations":{{{first}"d":{{"Address":"{}"}}}}}}}}}}"#,
        scene.route,
        origin.url(),
    ));
    let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
    proxy.service()
}

/// The one connection that there may be to the last destination.
async fn connect(service: &ProxyService) -> Lease {
    let generation = service.shared().load_full();
    let state: &ClusterState = generation.cluster(ClusterIndex(0));
    state.live().set_turn(0);
    let wanted = ConnectionRequest {
        destination: state.destinations().last().unwrap(),
        upstream: generation.snapshot().clusters()[0].upstream(),
        client: state.client(),
        protocols: Protocols::Http1,
        announced: None,
        fresh: false,
        careful: false,
    };
    service.pool().acquire(wanted, None).await.unwrap()
}

fn serve(client: DuplexStream, service: ProxyService, way: Way, worker: Arc<WorkerShared>) {
    let info = ConnectionInfo::new(([192, 0, 2, 7], 4711).into());
    let permit = worker.enter();
    // Not known to the server, it goes over `http` types.
    let serving: Pin<Box<dyn Future<Output = ()>>> = match way.means {
        Means::Bytes => {
            let served = Rc::new(Served::new(ProxyHandler::new(service)));
            Box::pin(serve_cleartext(client, info, served, permit, worker))
        }
        Means::Types => {
            let served = Rc::new(Served::new(ServiceHandler(service)));
            Box::pin(serve_cleartext(client, info, served, permit, worker))
        }
    };
    spawn_local(serving);
}

/// Keeps what is logged.
#[derive(Default)]
struct Log(Mutex<Vec<Line>>);

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        self.0.lock().push(Line::of(record));
    }
}
