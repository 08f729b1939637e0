//! Clients of a fleet.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use testkit::body;
use testkit::client::{Answer, Connection, Load, RunningLoad};
use testkit::time::{eventually, guarded};

/// Sends a request on its own connection. Returns the status, and the name of the instance.
pub(crate) async fn get(
    proxy: SocketAddr,
    host: &str,
    header: Option<(&str, &str)>,
) -> Option<(u16, String)> {
    let mut client = Connection::http1(proxy).await.ok()?;
    let mut request = client.request_for(host, "GET", "/");
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let request = request.body(body::empty()).expect("it is a request");
    let answer = client.send(request).await.ok()?;
    Some((answer.status.as_u16(), answer.text()))
}

/// Waits until an instance responds to requests for a host.
pub(crate) async fn until_answered(proxy: SocketAddr, host: &str, name: &str) {
    let wanted = Some((200, name.to_owned()));
    eventually(format!("{proxy} answers {host} with {name}"), async || {
        get(proxy, host, None).await == wanted
    })
    .await;
}

/// Continuous requests through one proxy to all services.
pub(crate) struct Traffic {
    name: &'static str,
    /// The loads, one for each of [`ASKED`].
    loads: Vec<RunningLoad>,
    seen: Arc<Mutex<BTreeSet<String>>>,
}

/// The requests: host, header, and the instances that may respond.
pub(crate) const ASKED: [(&str, Option<&str>, &[&str]); 4] = [
    ("shop-http.example", None, SHOP),
    ("shop-http.example", Some("fix1"), &["branch"]),
    ("wiki.example", None, &["wiki"]),
    ("shop-fix1-http.example", None, &["branch"]),
];
/// The pause between two requests of a connection, so that four concurrent fleets leave some of the machine.
const PAUSE: Duration = Duration::from_millis(10);
const SHOP: &[&str] = &["first", "second", "third", "fourth"];

impl Traffic {
    /// Every other request closes its connection, so that new connections are opened all the time.
    pub(crate) fn start(name: &'static str, proxy: SocketAddr) -> Self {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let loads = ASKED.map(|(host, branch, may_answer)| {
            let saw = Arc::clone(&seen);
            let load = Load::new(proxy)
                .connections(1)
                .pause(PAUSE)
                .request(move |connection, number| {
                    let mut request = connection.request_for(host, "GET", "/");
                    if let Some(branch) = branch {
                        request = request.header("x-branch-name", branch);
                    }
                    if number % 2 == 0 {
                        request = request.header("connection", "close");
                    }
                    request.body(body::empty()).expect("it is a request")
                })
                .expect(move |answer: &Answer| {
                    let by = answer.text();
                    if answer.status != 200 || !may_answer.contains(&&*by) {
                        let status = answer.status.as_u16();
                        return Err(format!("{host} {branch:?}: {status} by {by}"));
                    }
                    let mut seen = saw.lock();
                    seen.insert(by);
                    Ok(())
                });
            load.start()
        });
        Self {
            name,
            loads: loads.into(),
            seen,
        }
    }

    fn seen(&self) -> BTreeSet<String> {
        self.seen.lock().clone()
    }

    /// Waits for `requests` more requests of each kind.
    pub(crate) async fn more(&self, requests: u64) {
        for load in &self.loads {
            let done = load.report().finished;
            load.wait_for_finished(done + requests).await;
        }
    }

    /// Waits until an instance has answered.
    pub(crate) async fn until_seen(&self, instance: &str) {
        eventually(format!("{} sees {instance}", self.name), async || {
            self.seen().contains(instance)
        })
        .await;
    }

    /// Waits until an instance gets no more requests: in a series that is long enough for each instance to
    /// get some.
    pub(crate) async fn until_unseen(&self, instance: &str) {
        guarded(format!("{} no longer sees {instance}", self.name), async {
            loop {
                self.seen.lock().clear();
                self.more(30).await;
                if !self.seen().contains(instance) {
                    return;
                }
            }
        })
        .await;
    }

    /// Ends the load, and fails if any request has failed. Returns the number of requests.
    pub(crate) async fn end(self) -> u64 {
        let mut finished = 0;
        for load in self.loads {
            let report = load.stop().await;
            println!("{}: {report}", self.name);
            assert_eq!(report.failures(), 0, "{}: {report}", self.name);
            finished += report.finished;
        }
        finished
    }
}
