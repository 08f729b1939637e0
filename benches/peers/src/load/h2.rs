//! Load over HTTP/2 with prior knowledge: a closed loop of several streams on each connection.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use ::h2::client::{self, SendRequest};
use bytes::Bytes;
use http::Request;
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time;

use super::phase::{Course, Phase, Step};
use super::{Edge, HOST, Plan, Tally};

/// Interval between checks for the end of the time.
const TICK: std::time::Duration = std::time::Duration::from_millis(2);

/// Keeps `streams` requests in flight on each of the plan's connections.
///
/// # Errors
///
/// Fails if the system denies a runtime or no connection can be opened. Later errors are counted
/// instead.
pub(crate) fn run(
    plan: &Plan,
    address: SocketAddr,
    streams: usize,
    probe: &mut dyn FnMut(Edge),
) -> io::Result<Tally> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, drive(plan, address, streams, probe))
}

struct Shared {
    plan: Plan,
    course: Course,
    tally: Tally,
    under_way: u64,
}

async fn drive(
    plan: &Plan,
    address: SocketAddr,
    streams: usize,
    probe: &mut dyn FnMut(Edge),
) -> io::Result<Tally> {
    let shared = Rc::new(RefCell::new(Shared {
        plan: *plan,
        course: Course::new(plan.warm_up, plan.extent),
        tally: Tally::new(),
        under_way: 0,
    }));
    for _ in 0..plan.connections {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = client::handshake(socket).await.map_err(io::Error::other)?;
        // Each of its streams reports its error.
        tokio::task::spawn_local(connection);
        for _ in 0..streams {
            tokio::task::spawn_local(stream(sender.clone(), Rc::clone(&shared)));
        }
    }
    let start = Instant::now();
    let mut begun = start;
    loop {
        let step = {
            let mut shared = shared.borrow_mut();
            let under_way = shared.under_way;
            shared.course.advance(start.elapsed(), under_way)
        };
        match step {
            Step::Go => time::sleep(TICK).await,
            Step::Begin => {
                shared.borrow_mut().tally = Tally::new();
                probe(Edge::Begin);
                begun = Instant::now();
            }
            Step::End => {
                probe(Edge::End);
                shared.borrow_mut().tally.elapsed = begun.elapsed();
            }
            Step::Stop => {
                let mut shared = shared.borrow_mut();
                shared.tally.unanswered = shared.under_way;
                return Ok(shared.tally.clone());
            }
        }
    }
}

/// Sends one request after the other.
async fn stream(mut sender: SendRequest<Bytes>, shared: Rc<RefCell<Shared>>) {
    let expected = shared.borrow().plan.exchange.resource.len();
    let path = shared.borrow().plan.exchange.path();
    loop {
        if !shared.borrow().course.may_send() {
            // It may be allowed again when the others have finished.
            if matches!(
                shared.borrow().course.phase(),
                Phase::Draining { .. } | Phase::Over
            ) {
                return;
            }
            time::sleep(TICK).await;
            continue;
        }
        {
            let mut shared = shared.borrow_mut();
            shared.course.has_sent();
            shared.under_way += 1;
        }
        let sent = Instant::now();
        let outcome = exchange(&mut sender, &path).await;
        let mut shared = shared.borrow_mut();
        shared.under_way -= 1;
        match outcome {
            Ok(length) if length == expected => {
                if matches!(shared.course.phase(), Phase::Measuring { .. }) {
                    shared.tally.requests += 1;
                    shared.tally.latency.record(sent.elapsed());
                }
            }
            Ok(length) => shared
                .tally
                .fail(|| format!("a body of {length} bytes instead of {expected}")),
            Err(why) => {
                shared.tally.fail(|| why);
                return;
            }
        }
    }
}

/// Sends one request. Returns the length of the response body.
async fn exchange(sender: &mut SendRequest<Bytes>, path: &str) -> Result<u64, String> {
    let request = Request::get(format!("http://{HOST}{path}"))
        .header("user-agent", "bench-peers")
        .header("accept", "*/*")
        .header("accept-language", "en")
        .header("x-request-id", "4711-0815")
        .body(())
        .map_err(|error| error.to_string())?;
    let failed = |error: ::h2::Error| format!("HTTP/2: {error}");
    let mut ready = sender.clone().ready().await.map_err(failed)?;
    let (response, _) = ready.send_request(request, true).map_err(failed)?;
    let response = response.await.map_err(failed)?;
    if response.status() != http::StatusCode::OK {
        return Err(format!("status {}", response.status().as_u16()));
    }
    let mut body = response.into_body();
    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data.map_err(failed)?;
        length += data.len() as u64;
        body.flow_control()
            .release_capacity(data.len())
            .map_err(failed)?;
    }
    Ok(length)
}
