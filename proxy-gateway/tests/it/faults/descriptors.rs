//! A program without file descriptors.

use std::process::Stdio;
use std::time::Duration;

use testkit::client::{Connection, Load};
use testkit::origin::Origin;
use testkit::peers::{self, PeerProcess};
use testkit::raw::RawClient;
use testkit::time::guarded;

use crate::common::{ConfigFile, address_after, command};
use crate::faults::{READY, Requests};

/// Limit of open files, also the hard one.
const FILES: usize = 96;

/// The line of a program that has no descriptor for a connection.
const EXHAUSTED: &str = "connections cannot be accepted";

/// Time without a response after that line. Then a client counts as not accepted.
const SILENCE: Duration = Duration::from_secs(1);

const REQUEST: &str = "GET /late HTTP/1.1\r\nHost: h\r\n\r\n";

/// Starts the program with few descriptors, and more connections than those allow.
async fn start_with_few(file: &ConfigFile) -> PeerProcess {
    let program = command(&["run", "--config", &file.argument()]);
    let program = program.as_std();
    let mut command = tokio::process::Command::new("sh");
    command
        .args(["-c", &format!(r#"ulimit -n {FILES}; exec "$0" "$@""#)])
        .arg(program.get_program())
        .args(program.get_args())
        .env_remove("RUST_LOG")
        .stderr(Stdio::piped());
    let mut process = peers::spawn(command);
    process.wait_for_output(READY).await;
    process
}

/// Clients that are connected are served, and the others as soon as there are descriptors.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_descriptors_fails_no_request() {
    let origin = Origin::named("blue");
    let file = ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Enabled": false }},
            "Server": {{ "Workers": 1, "Limits": {{ "Connections": 1000 }} }},
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{}/" }} }} }} }}
            }}
        }}"#,
        origin.url()
    ));
    let mut process = start_with_few(&file).await;
    let proxy = address_after(&process.output(), "listening on http://");
    // So that there are connections to the destination for all requests that follow.
    let load = Load::new(proxy).connections(8).max_requests(200).start();
    load.finish().await.assert_no_failure();
    let requests = Requests::start(proxy).await;
    // Each has a request behind it, so that none has to make room.
    let mut idle = Vec::new();
    let mut waiting = loop {
        assert!(idle.len() < FILES, "there are descriptors for all");
        let mut client = RawClient::connect(proxy)
            .await
            .expect("the system connects it");
        client
            .write_all(REQUEST)
            .await
            .expect("the system takes it");
        let silent = async {
            process.wait_for_output(EXHAUSTED).await;
            tokio::time::sleep(SILENCE).await;
        };
        tokio::select! {
            biased;
            response = client.read_response() => {
                assert_eq!(response.expect("it is accepted").status(), 200);
            }
            // It is connected, and not accepted.
            () = silent => break client,
        }
        idle.push(client);
    };
    requests.go_on("there are no descriptors").await;

    drop(idle);
    let response = guarded("a response", waiting.read_response()).await;
    assert_eq!(response.expect("it is accepted").status(), 200);
    let mut new = Connection::http1(proxy).await.expect("it listens");
    assert_eq!(new.get("/").await.expect("it answers").status, 200);
    requests.end().await;
    let output = process.output();
    assert_eq!(output.matches(EXHAUSTED).count(), 1, "{output}");
}
