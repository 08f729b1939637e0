use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Wake, Waker};

use super::*;
use crate::connection::ConnectionInfo;
use crate::server::connection::ConnectionState;
#[cfg(feature = "http2")]
use crate::server::connection::Held;
use crate::server::limits::Limits;
use crate::server::metrics::ServerMetrics;
use crate::server::shared::WorkerShared;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A worker with a budget of 1000 bytes.
struct Bench {
    worker: Arc<WorkerShared>,
    metrics: ServerMetrics,
}

impl Bench {
    fn new() -> Self {
        let metrics = ServerMetrics::new(1);
        let worker = WorkerShared::new(Limits::default(), 100, metrics.worker(0).clone(), None);
        Self {
            worker: Arc::new(worker.with_memory(1000)),
            metrics,
        }
    }

    fn connect(&self, address: &str) -> Arc<ConnectionState> {
        let remote = format!("{address}:1").parse().unwrap();
        let info = ConnectionInfo::new(remote);
        ConnectionState::new(self.worker.clone(), info, Instant::now())
    }

    fn held(&self) -> u64 {
        self.metrics.counts().held_bytes
    }

    fn shed(&self) -> u64 {
        self.metrics.counts().shed_connections
    }
}

fn hold(connection: &ConnectionState, bytes: u64) -> bool {
    connection.hold(bytes, Waker::noop())
}

#[tokio::test(start_paused = true)]
async fn only_so_many_are_told_to_end_and_once() {
    let bench = Bench::new();
    let mut all: Vec<_> = (0..5).map(|_| bench.connect("192.0.2.1")).collect();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(!all[0].hold(240, &waker));
    for connection in &all[1..4] {
        assert!(!hold(connection, 240));
    }
    assert!(!bench.metrics.sheds());
    // 1100 exceed seven eighths by 225: one connection, the one without progress for the longest
    // time.
    assert!(!hold(&all[4], 140));
    let told: Vec<_> = all.iter().map(|one| one.is_shed()).collect();
    assert_eq!(told, [true, false, false, false, false]);
    assert_eq!(woken.0.load(SeqCst), 1);
    assert!(bench.metrics.sheds());
    // A connection counts until it has ended, but no other one has to end in its place.
    let late = bench.connect("192.0.2.2");
    assert!(!hold(&late, 130));
    assert_eq!((bench.held(), bench.shed()), (1230, 1));
    drop(all.remove(0));
    assert_eq!(bench.held(), 990);
    assert!(!hold(&late, 200));
    let told: Vec<_> = all.iter().map(|one| one.is_shed()).collect();
    assert_eq!(told, [true, false, false, false]);
    drop((all, late));
    assert_eq!(bench.held(), 0);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(!bench.metrics.sheds());
}

#[tokio::test(start_paused = true)]
async fn who_held_most_is_a_problem_for_five_minutes() {
    let bench = Bench::new();
    bench.metrics.limit_held(1000);
    assert!(bench.metrics.memory_problem().is_none());
    let others = bench.connect("192.0.2.9");
    hold(&others, 200);
    let greedy = ["2001:db8:0:7::1", "2001:db8:0:7::2"].map(|address| {
        let connection = bench.connect(&format!("[{address}]"));
        hold(&connection, 450);
        connection
    });
    tokio::time::sleep(Duration::from_secs(7)).await;
    let problem = bench.metrics.memory_problem().unwrap();
    assert_eq!(problem.code, "memory_limit_reached");
    assert_eq!(problem.pointer, "/Server/Limits/MemoryBytes");
    assert_eq!(
        problem.message,
        "clients want more memory than the 1000 bytes that they may hold: 1 connection was reset since the start, \
         the last 7 s ago; 2001:db8:0:7::/64 held most, 900 bytes in 2 connections"
    );
    assert!(
        problem
            .suggestion
            .unwrap()
            .contains("Server.Limits.MemoryBytes")
    );
    drop((others, greedy));
    tokio::time::sleep(Duration::from_secs(292)).await;
    assert!(bench.metrics.memory_problem().is_some());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(bench.metrics.memory_problem().is_none());
}

/// The last entry of the list moves to the slot of a removed one.
#[tokio::test]
async fn connections_come_and_go_in_any_order() {
    let bench = Bench::new();
    let mut all: Vec<_> = (0..4).map(|_| bench.connect("192.0.2.1")).collect();
    for connection in &all {
        hold(connection, 100);
    }
    drop(all.remove(0));
    drop(all.remove(1));
    assert_eq!(bench.held(), 200);
    all[0].hold_nothing();
    let other = bench.connect("192.0.2.2");
    hold(&other, 950);
    let told: Vec<_> = all
        .iter()
        .chain([&other])
        .map(|one| one.is_shed())
        .collect();
    assert_eq!(told, [false, false, true], "it holds most");
    drop(other);
    assert_eq!(bench.held(), 100);
    drop(all);
    assert!(bench.worker.memory.holders.lock().is_empty());
    assert_eq!(bench.worker.memory.leaving.load(Relaxed), 0);
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn parts_of_a_connection_add_up_and_are_forgotten_when_they_end() {
    let bench = Bench::new();
    let connection = bench.connect("192.0.2.1");
    let (mut one, mut other) = (Held::default(), Held::default());
    one.set(300, &connection);
    other.set(200, &connection);
    assert_eq!(bench.held(), 500);
    one.set(100, &connection);
    drop(other);
    assert_eq!(bench.held(), 100);
    drop(one);
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn reads_are_small_from_half_of_the_share_on() {
    let bench = Bench::new();
    let connection = bench.connect("192.0.2.1");
    for (bytes, is_tight) in [(500, false), (501, true), (900, true), (500, false)] {
        hold(&connection, bytes);
        assert_eq!(recycled::is_tight(), is_tight, "{bytes}");
    }
    hold(&connection, 900);
    drop(connection);
    assert!(!recycled::is_tight());
}

/// Services have tunnels on other threads.
#[tokio::test]
async fn what_another_thread_changes_concerns_the_reads_of_the_worker_alone() {
    let bench = Bench::new();
    let (connection, tunnel) = (bench.connect("192.0.2.1"), bench.connect("192.0.2.1"));
    hold(&connection, 900);
    let ended = std::thread::spawn(move || drop(connection));
    ended.join().unwrap();
    assert_eq!(bench.held(), 0);
    let _next = bench.connect("192.0.2.2");
    assert!(!recycled::is_tight(), "the worker is not told, and looks");

    let held = Arc::clone(&tunnel);
    let elsewhere = std::thread::spawn(move || {
        hold(&held, 900);
        recycled::is_tight()
    });
    assert!(!elsewhere.join().unwrap());
    let _next = bench.connect("192.0.2.2");
    assert!(recycled::is_tight());
}

/// Many connections grow before the ones told to end have run.
#[tokio::test]
async fn who_comes_at_the_wrong_moment_ends_at_once_unless_it_is_modest() {
    let bench = Bench::new();
    let greedy: Vec<_> = (0..8).map(|_| bench.connect("192.0.2.1")).collect();
    let told: Vec<_> = greedy.iter().map(|one| hold(one, 200)).collect();
    // With a budget of 1000 bytes, at most 1125 are held.
    assert_eq!(told[..5], [false; 5]);
    let rejected = told.iter().filter(|told| **told).count();
    assert!(rejected >= 2, "{told:?}");
    let modest = bench.connect("192.0.2.2");
    assert!(!hold(&modest, 100));
    assert!(!modest.is_shed());
}
