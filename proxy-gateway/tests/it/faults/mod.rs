//! Faults beside the running program: the requests that fail meanwhile, and that it recovers by itself.

mod admin;
#[cfg(target_os = "linux")]
mod descriptors;
mod destination;
mod names;
mod sources;

use std::net::SocketAddr;
use std::time::Duration;

use testkit::client::{Connection, Load, LoadReport, RunningLoad};

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

/// Number of requests during a fault, at least.
const DURING: u64 = 100;

/// Requests before, during and after a fault.
struct Requests(RunningLoad);

impl Requests {
    /// Starts sending over two connections that stay open, and waits for the first responses.
    async fn start(proxy: SocketAddr) -> Self {
        let load = Load::new(proxy).connections(2);
        let load = load.pause(Duration::from_millis(5)).start();
        load.wait_for_finished(20).await;
        Self(load)
    }

    /// Waits for as many more requests as count for a fault, none of which may fail.
    async fn go_on(&self, fault: &str) {
        let so_far = self.0.report().finished;
        self.0.wait_for_finished(so_far + DURING).await;
        let report = self.0.report();
        assert_eq!(report.failures(), 0, "{fault}: {report}");
    }

    /// Ends them. None has failed.
    async fn end(self) -> LoadReport {
        let report = self.0.stop().await;
        report.assert_no_failure();
        report
    }
}

/// The body of a response to a GET over a new connection.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut client = Connection::http1(address).await.expect("it listens");
    client.get(path).await.expect("it answers").text()
}
