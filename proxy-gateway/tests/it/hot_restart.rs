//! A second instance of the program takes the place of the first.

#![cfg(target_os = "linux")]

use std::net::SocketAddr;

use crate::common::{ConfigFile, output, spawn, start};
use testkit::client::{Connection, Load, RunningLoad};
use testkit::origin::{NamedOrigin, Origin};
use testkit::peers::{self, PeerProcess};
use testkit::time::eventually;

/// The configuration and the addresses of both instances.
struct Place {
    file: ConfigFile,
    proxy: SocketAddr,
    admin: SocketAddr,
}

impl Place {
    fn new(origin: &NamedOrigin) -> Self {
        let free = || SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
        let place = Self {
            file: ConfigFile::new("{}"),
            proxy: free(),
            admin: free(),
        };
        place.file.write(&place.config(&route_to(origin)));
        place
    }

    fn config(&self, more: &str) -> String {
        let socket = self.file.folder().join("handover.sock");
        format!(
            r#"{{ "Listeners": {{ "web": {{ "Address": "{}" }} }}, "Admin": {{ "Address": "{}" }},
                "Server": {{ "Handover": "{}", "ReadinessDelay": "1h" }}, {more} }}"#,
            self.proxy,
            self.admin,
            socket.display()
        )
    }

    async fn start(&self) -> PeerProcess {
        start(
            &["run", "--config", &self.file.argument()],
            "a second Ctrl-C",
        )
        .await
    }

    /// Returns the admin page of the configuration.
    async fn admin(&self) -> String {
        let mut client = Connection::http1(self.admin).await.expect("it listens");
        let answer = client.get("/api/v1/config").await.expect("it answers");
        answer.text()
    }
}

fn route_to(origin: &NamedOrigin) -> String {
    let address = origin.addr();
    format!(
        r#""ReverseProxy": {{ "Routes": {{ "r": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://{address}/" }} }} }} }} }}"#
    )
}

/// Creates a load with a connection for each request.
fn closing(place: &Place) -> Load {
    Load::new(place.proxy).request(|connection, _| {
        let request = connection.request("GET", "/").header("connection", "close");
        request.body(testkit::body::empty()).expect("it is one")
    })
}

/// Ends the loads when each has had `answers` responses. None may have failed.
async fn end(loads: impl IntoIterator<Item = RunningLoad>, answers: u64) {
    for load in loads {
        load.wait_for_finished(answers).await;
        let report = load.stop().await;
        println!("{report}");
        report.assert_no_failure();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_takes_the_place_under_load_and_no_request_fails() {
    let origin = Origin::named("a");
    let place = Place::new(&origin);
    let mut running = place.start().await;
    let closing = closing(&place);
    let keeping = Load::new(place.proxy);
    let multiplexed = Load::new(place.proxy).http2();
    let loads = [closing, keeping, multiplexed].map(|load| load.connections(2).start());
    for round in 1..=3 {
        for load in &loads {
            load.wait_for_finished(round * 100).await;
        }
        let successor = place.start().await;
        // The predecessor ends by itself, without the delay for load balancers.
        let (status, said) = running.wait_with_output().await;
        assert!(status.success(), "{said}");
        assert!(
            said.contains("every request in flight was answered"),
            "{said}"
        );
        assert!(place.admin().await.contains(&origin.addr().to_string()));
        running = successor;
    }
    end(loads, 500).await;
}

/// The slower of two candidates serves by then, and finishes its requests.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_start_at_once_neither_fails_a_request() {
    let origin = Origin::named("a");
    let place = Place::new(&origin);
    let mut running = place.start().await;
    let closing = closing(&place);
    let loads = [closing, Load::new(place.proxy)].map(|load| load.connections(4).start());
    for round in 1..=4 {
        for load in &loads {
            load.wait_for_finished(round * 100).await;
        }
        let arguments = ["run", "--config", &place.file.argument()];
        let mut both = [spawn(&arguments), spawn(&arguments)];
        // One is outrun by the other, or replaced by it.
        let is_over = |process: &PeerProcess| {
            let said = process.output();
            said.contains("this one is not needed") || said.contains("a successor serves")
        };
        eventually("one of the two serves", async || {
            let serves = |process: &PeerProcess| process.output().contains("a second Ctrl-C");
            both.iter().any(is_over) && both.iter().any(|one| serves(one) && !is_over(one))
        })
        .await;
        assert!(running.wait().await.success());
        if is_over(&both[0]) {
            both.reverse();
        }
        let [winner, mut loser] = both;
        loser.wait().await;
        running = winner;
    }
    end(loads, 600).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_gets_ready_changes_nothing() {
    let origin = Origin::named("a");
    let place = Place::new(&origin);
    let running = place.start().await;
    // Its control plane does not exist, so it has nothing to serve.
    let nobody = format!(
        r#""XdsDiscovery": {{ "Servers": ["http://127.0.0.1:{}"] }}"#,
        peers::free_port()
    );
    let broken = ConfigFile::new(&place.config(&nobody));
    let arguments = ["run", "--config", &broken.argument()];
    let mut broken = start(&arguments, "taking over from the instance that runs").await;
    let get = async || {
        let mut client = Connection::http1(place.proxy).await.expect("it listens");
        client.get("/").await.expect("it answers").text()
    };
    for _ in 0..20 {
        assert_eq!(get().await, "a");
    }
    assert!(place.admin().await.contains(&origin.addr().to_string()));
    broken.kill().await;
    eventually("the first one has noticed", async || {
        running.output().contains("a successor gave up")
    })
    .await;
    assert_eq!(get().await, "a");

    // The next one is as good as any.
    let mut running = running;
    let mut successor = place.start().await;
    assert!(running.wait().await.success());
    assert_eq!(get().await, "a");

    // Without a successor it releases its port, with the delay cut short by a second signal.
    successor.interrupt();
    successor.wait_for_output("stopping").await;
    successor.interrupt();
    successor.wait().await;
    assert!(std::net::TcpListener::bind(place.proxy).is_ok());
}

/// The successor serves its known configuration, since no other instance would serve.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_ready_serves_what_it_knows_when_the_first_one_dies() {
    let origin = Origin::named("a");
    let place = Place::new(&origin);
    let mut running = place.start().await;
    let nobody = format!(
        r#""XdsDiscovery": {{ "Servers": ["http://127.0.0.1:{}"] }}, {}"#,
        peers::free_port(),
        route_to(&origin).replace("/{**rest}", "/known")
    );
    let waiting = ConfigFile::new(&place.config(&nobody));
    let arguments = ["run", "--config", &waiting.argument()];
    let mut waiting = start(&arguments, "taking over from the instance that runs").await;
    let get = async |path: &str| {
        let mut client = Connection::http1(place.proxy).await.expect("it listens");
        client.get(path).await.expect("it answers")
    };
    assert_eq!(get("/unknown").await.text(), "a", "the first one serves");
    running.kill().await;
    waiting
        .wait_for_output("other requests than those of known routes get 503")
        .await;
    eventually("the route of the file is served", async || {
        get("/known").await.text() == "a"
    })
    .await;
    let unknown = get("/unknown").await;
    assert_eq!(unknown.status, 503);
    assert_eq!(unknown.header("retry-after"), Some("5"));
    let mut page = Connection::http1(place.admin).await.expect("it listens");
    assert_eq!(page.get("/readyz").await.expect("it answers").status, 503);

    // A candidate that becomes ready takes over all the same.
    let successor = place.start().await;
    assert!(waiting.wait().await.success());
    assert_eq!(get("/unknown").await.text(), "a");
    assert!(!successor.output().contains("not needed"));
}

/// One of two waiting successors takes the place of an instance that dies; the other one ends with a message.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_that_wait_serves_when_the_first_one_dies() {
    let origin = Origin::named("a");
    let place = Place::new(&origin);
    let mut running = place.start().await;
    let get = async || {
        let mut client = Connection::http1(place.proxy).await.expect("it listens");
        client.get("/known").await.expect("it answers").text()
    };
    // Again with the one that took over as the one that dies.
    for _ in 0..2 {
        let nobody = format!(
            r#""XdsDiscovery": {{ "Servers": ["http://127.0.0.1:{}"] }}, {}"#,
            peers::free_port(),
            route_to(&origin).replace("/{**rest}", "/known")
        );
        let waiting = ConfigFile::new(&place.config(&nobody));
        let argument = waiting.argument();
        let mut both = Vec::new();
        for _ in 0..2 {
            let arguments = ["run", "--config", &argument];
            both.push(start(&arguments, "taking over from the instance that runs").await);
        }
        running.kill().await;
        let serves = |process: &PeerProcess| process.output().contains("listening on http://");
        let ends = |process: &PeerProcess| process.output().contains("this one is not needed");
        eventually("one serves and one ends", async || {
            both.iter().any(serves) && both.iter().any(ends)
        })
        .await;
        assert!(!both.iter().any(|one| serves(one) && ends(one)));
        if ends(&both[0]) {
            both.reverse();
        }
        let mut loser = both.pop().expect("there are two");
        running = both.pop().expect("there are two");
        assert!(!loser.wait().await.success(), "it was not asked to end");
        assert_eq!(get().await, "a");
    }
    // It gives its place to the next one as any other does.
    let successor = place.start().await;
    assert!(running.wait().await.success());
    assert_eq!(get().await, "a");
    assert!(!successor.output().contains("not needed"));
}

/// The number of waiting successors is limited, and the message names them.
#[tokio::test(flavor = "multi_thread")]
async fn those_that_hang_are_named_to_whom_they_lock_out() {
    let origin = Origin::named("a");
    let place = Place::new(&origin);
    let running = place.start().await;
    let nobody = format!(
        r#""XdsDiscovery": {{ "Servers": ["http://127.0.0.1:{}"] }}"#,
        peers::free_port()
    );
    let waiting = ConfigFile::new(&place.config(&nobody));
    let arguments = ["run", "--config", &waiting.argument()];
    let mut hanging = Vec::new();
    for _ in 0..4 {
        hanging.push(start(&arguments, "taking over from the instance that runs").await);
    }
    let _late = spawn(&arguments);
    eventually("it says whom it waits for", async || {
        let said = running.output();
        let mut lines = said.lines();
        let line = lines.find(|line| line.contains("a successor was turned away"));
        line.is_some_and(|line| {
            let mut all = hanging.iter().map(|process| process.id().to_string());
            all.all(|id| line.contains(&id))
        })
    })
    .await;
}

#[tokio::test]
async fn a_place_that_cannot_be_used_ends_the_start() {
    let file = ConfigFile::new(
        r#"{ "Listeners": { "web": { "Address": "127.0.0.1:0" } }, "Admin": { "Enabled": false },
            "Server": { "Handover": "/proc/nowhere/handover.sock" }, "ReverseProxy": { "Routes": {}, "Clusters": {} } }"#,
    );
    let ended = output(&["run", "--config", &file.argument()]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("/proc/nowhere/handover.sock"),
        "{}",
        ended.stderr
    );
}
