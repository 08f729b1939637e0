//! Session affinity through the program: encrypted keys of clients, and the file with the keys that encrypt them.

use std::net::SocketAddr;
use std::path::Path;

use testkit::body;
use testkit::client::{Answer, Connection};
use testkit::origin::{NamedOrigin, Origin};
use testkit::peers::PeerProcess;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, start};

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

/// Number of requests that show where a client stays.
const REQUESTS: usize = 6;

const FIRST: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const SECOND: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

/// A way to carry the key of a client.
#[derive(Clone, Copy, Debug)]
struct Kind {
    policy: &'static str,
    path: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        policy: "Cookie",
        path: "/Cookie",
    },
    Kind {
        policy: "CustomHeader",
        path: "/CustomHeader",
    },
];

impl Kind {
    /// The key that a response gives to the client.
    fn given(self, answer: &Answer) -> Option<String> {
        match self.policy {
            "Cookie" => {
                let cookie = answer.header("set-cookie")?;
                Some(cookie.split(';').next().unwrap_or_default().to_owned())
            }
            _ => Some(answer.header("affinity-key")?.to_owned()),
        }
    }

    async fn request(self, gateway: SocketAddr, key: Option<&str>) -> Answer {
        let mut client = Connection::http1(gateway).await.expect("it listens");
        let mut request = client.request("GET", self.path);
        if let Some(key) = key {
            let header = match self.policy {
                "Cookie" => "cookie",
                _ => "affinity-key",
            };
            request = request.header(header, key);
        }
        let request = request.body(body::empty()).expect("it is a request");
        client.send(request).await.expect("it answers")
    }

    /// Requests without a key. Returns the key and the destination.
    async fn new_client(self, gateway: SocketAddr) -> (String, String) {
        let answer = self.request(gateway, None).await;
        assert_eq!(answer.status, 200, "{self:?}");
        let key = self.given(&answer).expect("a new client gets a key");
        (key, answer.text())
    }

    /// Asserts that a client stays at its destination and keeps its key.
    async fn assert_kept(self, gateway: SocketAddr, (key, destination): &(String, String)) {
        for _ in 0..REQUESTS {
            let answer = self.request(gateway, Some(key)).await;
            assert_eq!(answer.status, 200, "{self:?}");
            assert_eq!(answer.text(), *destination, "{self:?}");
            assert_eq!(self.given(&answer), None, "{self:?}: the key is valid");
        }
    }
}

fn config(origins: &[NamedOrigin; 3], server: &str) -> String {
    let destinations: Vec<_> = origins
        .iter()
        .enumerate()
        .map(|(number, origin)| format!(r#""{number}": {{ "Address": "{}/" }}"#, origin.url()))
        .collect();
    let parts = |each: &dyn Fn(Kind) -> String| KINDS.map(each).join(", ");
    format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "Server": {{ {server} }},
            "ReverseProxy": {{ "Routes": {{ {} }}, "Clusters": {{ {} }} }}
        }}"#,
        parts(&|Kind { policy, path }| format!(
            r#""{policy}": {{ "ClusterId": "{policy}", "Match": {{ "Path": "{path}" }} }}"#
        )),
        parts(&|Kind { policy, .. }| format!(
            r#""{policy}": {{
                "SessionAffinity": {{ "Enabled": true, "Policy": "{policy}", "AffinityKeyName": "affinity-key" }},
                "Destinations": {{ {} }}
            }}"#,
            destinations.join(", ")
        )),
    )
}

async fn run(file: &ConfigFile) -> (PeerProcess, SocketAddr) {
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on http://");
    (process, address)
}

/// Replaces the file with the keys, and waits until each program has read it for the `time`th time.
async fn rotate(file: &Path, keys: &[&str], programs: [&PeerProcess; 2], time: usize) {
    std::fs::write(file, keys.join("\n")).expect("the folder is ours");
    for program in programs {
        eventually("the keys are replaced", async || {
            let said = program.output();
            said.matches("the affinity keys were replaced").count() == time
        })
        .await;
    }
}

#[tokio::test]
async fn clients_keep_their_destinations_while_keys_are_rotated_in_two_gateways() {
    let origins = ["red", "green", "blue"].map(Origin::named);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let keys = folder.path().join("keys");
    std::fs::write(&keys, FIRST).expect("the folder is ours");
    let file = ConfigFile::new(&config(
        &origins,
        &format!(r#""AffinityKeysFile": {keys:?}"#),
    ));
    let (one, first) = run(&file).await;
    let (two, second) = run(&file).await;
    for kind in KINDS {
        let client = kind.new_client(first).await;
        kind.assert_kept(first, &client).await;
        kind.assert_kept(second, &client).await;
    }

    let mut early = Vec::new();
    for kind in KINDS {
        early.push(kind.new_client(first).await);
    }
    rotate(&keys, &[SECOND, FIRST], [&one, &two], 1).await;
    let mut late = Vec::new();
    for (kind, early) in KINDS.into_iter().zip(&early) {
        kind.assert_kept(first, early).await;
        kind.assert_kept(second, early).await;
        late.push(kind.new_client(second).await);
    }

    rotate(&keys, &[SECOND], [&one, &two], 2).await;
    for ((kind, early), late) in KINDS.into_iter().zip(&early).zip(&late) {
        kind.assert_kept(first, late).await;
        let answer = kind.request(first, Some(&early.0)).await;
        assert_eq!(answer.status, 200, "{kind:?}");
        let new = kind.given(&answer).expect("the old key cannot be read");
        kind.assert_kept(second, &(new, answer.text())).await;
    }
}

#[tokio::test]
async fn keys_in_the_configuration_outlive_a_restart() {
    let origins = ["red", "green", "blue"].map(Origin::named);
    let file = ConfigFile::new(&config(
        &origins,
        &format!(r#""AffinityKeys": ["{FIRST}"]"#),
    ));
    let (process, gateway) = run(&file).await;
    let mut clients = Vec::new();
    for kind in KINDS {
        clients.push(kind.new_client(gateway).await);
    }
    drop(process);
    let (_process, gateway) = run(&file).await;
    for (kind, client) in KINDS.into_iter().zip(&clients) {
        kind.assert_kept(gateway, client).await;
    }
}
