//! The generator against the origin: what is counted is what happened.

mod protocols;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::*;
use crate::origin::Origin;

fn plan(exchange: Exchange, pace: Pace, extent: Extent) -> Plan {
    Plan {
        exchange,
        pace,
        connections: 8,
        warm_up: Duration::from_millis(5),
        extent,
    }
}

fn target(origin: &Origin) -> Target {
    Target {
        address: origin.addresses()[0],
        tls: None,
    }
}

/// Runs the plan. Returns the tally and the reported edges.
fn run(plan: &Plan, target: &Target) -> (Tally, Vec<Edge>) {
    let mut edges = Vec::new();
    let tally = run_http1(plan, target, &mut |edge| edges.push(edge)).unwrap();
    (tally, edges)
}

#[test]
fn exactly_as_many_requests_are_made_as_are_asked_for() {
    let origin = Origin::start(None).unwrap();
    for exchange in Resource::ALL
        .map(Exchange::get)
        .into_iter()
        .chain([Exchange::post(1 << 20)])
    {
        let (tally, edges) = run(
            &plan(exchange, Pace::Closed, Extent::Requests(100)),
            &target(&origin),
        );
        assert_eq!(
            (tally.requests, tally.errors, tally.unanswered),
            (100, 0, 0),
            "{exchange:?} {:?}",
            tally.first_error
        );
        assert_eq!(tally.latency.len(), 100);
        assert_eq!(edges, [Edge::Begin, Edge::End]);
    }
}

#[test]
fn a_new_connection_for_each_request_is_a_new_connection() {
    let origin = Origin::start(None).unwrap();
    let (tally, _) = run(
        &plan(
            Exchange::get(Resource::Bytes128),
            Pace::Churn,
            Extent::Requests(200),
        ),
        &target(&origin),
    );
    assert_eq!(
        (tally.requests, tally.errors, tally.unanswered),
        (200, 0, 0),
        "{:?}",
        tally.first_error
    );
}

#[test]
fn an_open_loop_sends_what_is_due() {
    let origin = Origin::start(None).unwrap();
    let window = Duration::from_millis(200);
    let (tally, _) = run(
        &plan(
            Exchange::get(Resource::Empty),
            Pace::Open(500.0),
            Extent::Time(window),
        ),
        &target(&origin),
    );
    assert_eq!(
        (tally.errors, tally.unanswered),
        (0, 0),
        "{:?}",
        tally.first_error
    );
    // However late the machine schedules us: at most the due requests are sent, late answers count
    // too.
    let due = (tally.elapsed + Duration::from_millis(5)).as_secs_f64() * 500.0 + 2.0;
    assert!(
        tally.requests > 0 && (tally.requests as f64) < due + 50.0,
        "{tally:?}"
    );
    assert!(tally.latency.len() >= tally.requests);
}

#[test]
fn a_server_that_stalls_is_seen_in_the_latencies_of_all_that_were_due_meanwhile() {
    // One connection whose answers take 100 ms, with a request due each millisecond: the others
    // wait.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let served = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = socket.read(&mut buffer) {
                assert!(buffer[..read].ends_with(b"\r\n\r\n"));
                if served.fetch_add(1, Ordering::Relaxed) == 20 {
                    let stalled = Instant::now();
                    while stalled.elapsed() < Duration::from_millis(100) {
                        thread::park_timeout(Duration::from_millis(10));
                    }
                }
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let stalled = Plan {
            connections: 1,
            warm_up: Duration::ZERO,
            ..plan(
                Exchange::get(Resource::Empty),
                Pace::Open(1000.0),
                Extent::Time(Duration::from_millis(300)),
            )
        };
        let (tally, _) = run(&stalled, &Target { address, tls: None });
        assert_eq!(tally.errors, 0, "{:?}", tally.first_error);
        // A closed loop would have one latency of 100 ms; here 100 requests wait, half of them 50
        // ms or more.
        let slow = tally.latency.quantile(0.85).unwrap();
        assert!(
            slow >= Duration::from_millis(40),
            "{slow:?} of {}",
            tally.latency.len()
        );
    });
}

#[test]
fn a_server_that_is_not_there_ends_the_run_long_before_its_time() {
    let nobody = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let long = plan(
        Exchange::get(Resource::Empty),
        Pace::Closed,
        Extent::Time(Duration::from_secs(600)),
    );
    let (tally, _) = run(
        &long,
        &Target {
            address: nobody,
            tls: None,
        },
    );
    assert_eq!(tally.requests, 0);
    assert!(tally.errors > 0);
    assert!(tally.first_error.unwrap().starts_with("connecting: "));
}

#[test]
fn a_connection_that_is_cut_in_the_middle_is_an_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                let (mut socket, _) = listener.accept().unwrap();
                let mut buffer = [0; 4096];
                let _ = socket.read(&mut buffer);
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
            }
        });
        let one = Plan {
            connections: 1,
            warm_up: Duration::ZERO,
            ..plan(
                Exchange::get(Resource::Empty),
                Pace::Closed,
                Extent::Requests(20),
            )
        };
        let (tally, _) = run(&one, &Target { address, tls: None });
        assert_eq!((tally.requests, tally.errors), (0, 20));
        assert_eq!(
            tally.first_error.as_deref(),
            Some("the connection ended within a response")
        );
    });
}

#[test]
fn idle_connections_are_held_after_one_answer_each() {
    let origin = Origin::start(None).unwrap();
    let held = hold(origin.addresses()[1], Exchange::get(Resource::Bytes128), 50).unwrap();
    assert_eq!(held.len(), 50);
}
