//! The cost of a change in a large fleet: one endpoint, one of every service, or the share of a canary, for
//! every connected stream.
//!
//! `cargo bench -p xds-control-plane` has 5,000 services of 10 instances and 1,000 streams; the environment
//! variables `SERVICES`, `INSTANCES` and `STREAMS` override these, and `ONLY_ROUTES` leaves out the streams
//! that have endpoints only. Each stream subscribes to the endpoints of all services, as an Envoy does that
//! has all clusters. Those of the canary subscribe to clusters and routes as well. All streams acknowledge
//! everything. The clients are a separate process, whose processor time is shown separately. A change
//! begins when the sources have reported it, and ends with the last acknowledgement: it is translated,
//! assembled and sent, without the time for which changes are gathered (10 ms by default). Without
//! `--bench`, as when tests are run, it is small.

#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

mod clients;
mod fleet;
mod machine;

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::snapshot::Snapshot;

use self::clients::{Clients, Subscribed, Variant};
use self::fleet::Fleet;
use self::machine::{cpu, resident};

/// Number of times that one endpoint changes.
const ROUNDS: u16 = 9;
/// Number of times that one share of a service's requests changes.
const SHARES: u32 = 3;

fn setting(name: &str, large: usize, small: usize) -> usize {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let set = std::env::var(name).ok();
    set.map_or(if is_bench { large } else { small }, |value| {
        value.parse().unwrap()
    })
}

/// Returns a counter of the server, summed over all labels.
fn counted(registry: &Registry, metric: &str) -> u64 {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let values = text
        .lines()
        .filter(|line| line.starts_with(metric))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    values.sum()
}

/// The cost of a change.
#[derive(Clone, Copy)]
struct Cost {
    bytes: u64,
    took: Duration,
    server: Duration,
    clients: Duration,
}

impl Cost {
    fn show(self, what: &str) {
        println!(
            "{what:<32} {:>13} bytes {:>8.3} s to the last acknowledgement; processor: {:>7.3} s here, {:>7.3} s clients",
            self.bytes,
            self.took.as_secs_f64(),
            self.server.as_secs_f64(),
            self.clients.as_secs_f64(),
        );
    }
}

/// A server with its clients.
struct Bench {
    registry: Registry,
    streams: u64,
    clients: Clients,
}

impl Bench {
    /// Returns the cost until every stream has acknowledged once more.
    async fn measure(&self, change: impl FnOnce()) -> Cost {
        self.measure_until(1, change).await
    }

    /// Returns the cost until each stream has sent `each` more acknowledgements.
    async fn measure_until(&self, each: u64, change: impl FnOnce()) -> Cost {
        let acknowledged = counted(&self.registry, "xds_acknowledgements_total");
        let bytes = counted(&self.registry, "xds_sent_bytes_total");
        let (server, clients) = (cpu(std::process::id()), cpu(self.clients.id()));
        let start = Instant::now();
        change();
        let expected = acknowledged + self.streams * each;
        while counted(&self.registry, "xds_acknowledgements_total") < expected {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Cost {
            took: start.elapsed(),
            bytes: counted(&self.registry, "xds_sent_bytes_total") - bytes,
            server: cpu(std::process::id()).saturating_sub(server),
            clients: cpu(self.clients.id()).saturating_sub(clients),
        }
    }
}

/// The middle one by time, with the processor time of all of them, shared out: the clock that counts it is coarse.
fn typical(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by_key(|cost| cost.took);
    let rounds = u32::try_from(costs.len()).unwrap();
    Cost {
        server: costs.iter().map(|cost| cost.server).sum::<Duration>() / rounds,
        clients: costs.iter().map(|cost| cost.clients).sum::<Duration>() / rounds,
        ..costs[costs.len() / 2]
    }
}

/// The size of the fleet.
#[derive(Clone, Copy)]
struct Size {
    services: usize,
    instances: usize,
    streams: usize,
}

/// Begins to serve, and waits until all clients have what they subscribe to.
async fn begin(
    fleet: &mut Fleet,
    variant: Variant,
    subscribed: Subscribed,
    size: Size,
) -> (Bench, watch::Sender<Option<Arc<Snapshot>>>, JoinHandle<()>) {
    let start = Instant::now();
    let first = fleet.assemble();
    println!("everything is assembled in {:.3?}", start.elapsed());

    let (snapshots, receiver) = watch::channel(Some(first));
    let options = ServerOptions::default().with_patience(Duration::from_secs(600));
    let server = XdsServer::new(receiver, options);
    let mut registry = Registry::default();
    server.handle().register(&mut registry);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async {
        let served = server.serve(listener, std::future::pending()).await;
        served.unwrap();
    });

    let before = Instant::now();
    let Size {
        services, streams, ..
    } = size;
    let bench = Bench {
        registry,
        streams: u64::try_from(streams).unwrap(),
        clients: Clients::start(&address, variant, subscribed, services, streams),
    };
    let mut all = bench.measure_until(subscribed.types(), || ()).await;
    all.took = before.elapsed();
    all.show("all clients connect");
    println!(
        "resident: {} MB here, {} MB clients",
        resident(std::process::id()),
        resident(bench.clients.id())
    );
    (bench, snapshots, serving)
}

async fn endpoints(variant: Variant, size: Size) {
    println!("{} streams of endpoints", variant.name());
    let mut fleet = Fleet::new(size.services, size.instances);
    let (bench, snapshots, serving) = begin(&mut fleet, variant, Subscribed::Endpoints, size).await;
    let publish = |snapshot: Arc<Snapshot>| {
        snapshots.send_replace(Some(snapshot));
    };
    let mut costs = Vec::new();
    let mut made = Vec::new();
    for port in 0..ROUNDS {
        fleet.change_one(1000 + port);
        let cost = bench.measure(|| {
            let start = Instant::now();
            let snapshot = fleet.update_endpoints();
            made.push(start.elapsed());
            publish(snapshot);
        });
        costs.push(cost.await);
    }
    made.sort();
    typical(costs).show("one endpoint changes");
    println!("… of which {:.3?} make the snapshot", made[made.len() / 2]);
    fleet.change_all(2000);
    let cost = bench.measure(|| publish(fleet.update_endpoints()));
    cost.await.show("one of every service changes");
    println!("resident: {} MB here", resident(std::process::id()));
    serving.abort();
}

/// Measures routes. All virtual hosts are one resource, which is sent as a whole after each change.
async fn routes(variant: Variant, size: Size) {
    println!(
        "{} streams of clusters, endpoints and routes",
        variant.name()
    );
    let mut fleet = Fleet::new(size.services, size.instances);
    let (bench, snapshots, serving) =
        begin(&mut fleet, variant, Subscribed::Everything, size).await;
    let mut costs = Vec::new();
    let mut made = Vec::new();
    for percent in 0..SHARES {
        fleet.change_share(10 + percent);
        let cost = bench.measure(|| {
            let start = Instant::now();
            let snapshot = fleet.assemble();
            made.push(start.elapsed());
            snapshots.send_replace(Some(snapshot));
        });
        costs.push(cost.await);
    }
    made.sort();
    typical(costs).show("one canary share changes");
    println!("… of which {:.3?} make the snapshot", made[made.len() / 2]);
    println!("resident: {} MB here", resident(std::process::id()));
    serving.abort();
}

#[tokio::main]
async fn main() {
    clients::run_if_told().await;
    let size = Size {
        services: setting("SERVICES", 5_000, 50),
        instances: setting("INSTANCES", 10, 10),
        streams: setting("STREAMS", 1_000, 20),
    };
    let Size {
        services,
        instances,
        streams,
    } = size;
    println!("{services} services of {instances} instances, {streams} streams");
    let only_routes = std::env::var_os("ONLY_ROUTES").is_some();
    for variant in [Variant::Delta, Variant::StateOfTheWorld] {
        if !only_routes {
            endpoints(variant, size).await;
        }
        routes(variant, size).await;
    }
}
