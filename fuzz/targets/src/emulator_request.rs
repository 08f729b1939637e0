//! Requests to the gateway of the emulator.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use servicefabric_emulator::cluster::PageRequest;
use servicefabric_emulator::gateway::Emulator;
use servicefabric_emulator::hosting::Span;
use servicefabric_emulator::topology::Topology;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::input::text;

/// The cluster of every input.
static TOPOLOGY: LazyLock<Topology> = LazyLock::new(|| {
    Topology::from_toml(include_str!("emulator.toml")).expect("the file describes a cluster")
});

/// Time in which all replicas are placed and opened.
const SETTLED: Duration = Duration::from_secs(60);

/// Maximum number of requests per input.
const MAX_REQUESTS: usize = 8;

/// The most that a request may move the clock, and the most partitions of a service. More takes
/// longer and reaches no other code.
const MOST: (Span, f64) = (Span::from_secs(600), 50.0);

/// The documented statuses of the gateway, without those of injected faults. 500 is for errors
/// without a code.
const STATUSES: [u16; 13] = [
    200, 201, 202, 204, 400, 404, 408, 409, 413, 431, 501, 503, 504,
];

/// Lists that always exist.
const LISTS: [&str; 4] = [
    "GET /Nodes?api-version=6.0",
    "GET /ApplicationTypes?api-version=6.0",
    "GET /Applications?api-version=6.1",
    "GET /$/GetClusterHealthChunk?api-version=6.0",
];

/// Fuzzes a sequence of requests, separated by lines `---`. Each has a line with method and path,
/// then the body. `{P0}` stands for the id of the first existing partition, `{R0}` for that of its
/// first replica, which is on the node `{N0}`; `{P1}` stands for the next partition.
///
/// ```text
/// PUT /Names/Shop~Web/$/GetProperty?api-version=6.0
/// {"PropertyName":"a","Value":{"Kind":"String","Data":"b"}}
/// ---
/// GET /Partitions/{P0}/$/GetReplicas?api-version=6.0
/// ```
///
/// * Every answer is valid HTTP with a documented status. A body is JSON.
/// * An error has a code and a message, as in a real gateway. Only unknown paths are not found
///   without a body.
/// * A repeated query has the same answer.
/// * After any request, time still advances and the lists still exist.
pub fn emulator_request(data: &[u8]) {
    let text = text(data);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let emulator = Emulator::builder(TOPOLOGY.clone())
            .listen("127.0.0.1:0")
            .manual_time()
            .start()
            .await
            .expect("any port will do");
        emulator.advance(SETTLED);
        for request in text.split("---\n").take(MAX_REQUESTS) {
            ask(&emulator, request).await;
        }
        emulator.faults().clear();
        emulator.advance(SETTLED);
        for list in LISTS {
            let answer = exchange(&emulator, list, "").await;
            assert_eq!(answer.map(|answer| answer.status), Some(200), "{list}");
        }
        emulator.shutdown().await;
    });
}

async fn ask(emulator: &Emulator, request: &str) {
    let request = filled(emulator, request);
    let (line, body) = request.split_once('\n').unwrap_or((&request, ""));
    if takes_long(body) {
        return;
    }
    let hits = emulator.faults().hits();
    let answer = exchange(emulator, line, body).await;
    if emulator.faults().hits() != hits {
        return;
    }
    let answer = answer.unwrap_or_else(|| panic!("{line} has no answer"));
    check(line, &answer);
    if line.starts_with("GET ") && emulator.faults().waiting().is_empty() {
        let again = exchange(emulator, line, body).await;
        assert_eq!(again.as_ref(), Some(&answer), "{line}");
    }
}

/// Replaces the placeholders of ids.
fn filled(emulator: &Emulator, request: &str) -> String {
    let mut filled = request.to_owned();
    if !["{P", "{R", "{N"]
        .iter()
        .any(|place| request.contains(place))
    {
        return filled;
    }
    emulator.with_cluster(|cluster| {
        let services = cluster.applications(None, &PageRequest::default()).items;
        let services: Vec<_> = services
            .iter()
            .filter_map(|application| {
                cluster
                    .services(&application.name, None, &PageRequest::default())
                    .ok()
            })
            .flat_map(|page| page.items)
            .collect();
        let partitions = services
            .iter()
            .filter_map(|service| {
                cluster
                    .partitions(&service.name, &PageRequest::default())
                    .ok()
            })
            .flat_map(|page| page.items);
        for (index, partition) in partitions.enumerate().take(4) {
            filled = filled.replace(&format!("{{P{index}}}"), &partition.id.to_string());
            if let Some(replica) = partition.replicas.values().next() {
                filled = filled.replace(&format!("{{R{index}}}"), &replica.key.replica.to_string());
                filled = filled.replace(&format!("{{N{index}}}"), &replica.node);
            }
        }
    });
    filled
}

/// Returns true if a body asks for a long time or many partitions.
fn takes_long(body: &str) -> bool {
    let (longest, most) = MOST;
    let Ok(Value::Object(body)) = serde_json::from_str(body) else {
        return false;
    };
    let by = body
        .get("By")
        .cloned()
        .and_then(|by| serde_json::from_value::<Span>(by).ok());
    let count = body
        .get("PartitionDescription")
        .and_then(|scheme| scheme.get("Count"))
        .and_then(|count| count.as_f64().or_else(|| count.as_str()?.parse().ok()));
    by.is_some_and(|by| by > longest) || count.is_some_and(|count| count > most)
}

#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    /// True if the gateway itself answered, not the HTTP layer before it.
    is_own: bool,
    /// True if the connection ended before the answer.
    is_cut: bool,
    body: Vec<u8>,
}

/// Sends a request and reads its answer. Returns `None` if the connection closes without one.
async fn exchange(emulator: &Emulator, line: &str, body: &str) -> Option<Answer> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let talk = async move {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: emulator\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len(),
        );
        let mut answer = Vec::new();
        // The gateway may answer before it has read everything.
        let _ = client.write_all(request.as_bytes()).await;
        let _ = client.read_to_end(&mut answer).await;
        answer
    };
    let (answer, ()) = tokio::join!(talk, emulator.serve(server));
    Answer::read(&answer, line.starts_with("HEAD "))
}

impl Answer {
    fn read(bytes: &[u8], is_head: bool) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head ends");
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let body = bytes[end + 4..].to_vec();
        let field = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            fields
                .find(|(field, _)| *field == name)
                .map(|(_, value)| value.to_owned())
        };
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let length = field("content-length").and_then(|length| length.parse().ok());
        Some(Self {
            status: status.expect("an answer has a status"),
            is_own: field("x-content-type-options").is_some(),
            is_cut: !is_head && length.is_some_and(|length: usize| length != body.len()),
            body,
        })
    }
}

/// Returns true for a path under `/Names`, whose missing entries are reported by the status alone.
fn is_about_a_name(line: &str) -> bool {
    let path = line.split(' ').nth(1).unwrap_or_default();
    path.split(['/', '?']).nth(1) == Some("Names")
}

fn check(line: &str, answer: &Answer) {
    let Answer { status, body, .. } = answer;
    assert!(STATUSES.contains(status), "{line}: {status}");
    assert!(!answer.is_cut, "{line}: an answer ends early");
    if !answer.is_own {
        assert!(body.is_empty() && *status == 400, "{line}: {status}");
        return;
    }
    if body.is_empty() {
        let may_be_silent = match status {
            404 => is_about_a_name(line) || line.starts_with("HEAD "),
            _ => *status < 400 || line.starts_with("HEAD "),
        };
        assert!(may_be_silent, "{line}: {status} without a word");
        return;
    }
    let json: Value = serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{line}: {error}: {}", body.escape_ascii()));
    if *status < 400 {
        return;
    }
    if *status == 409 && json["Kind"] == "Failed" {
        // The result of a batch of operations has its own format.
        let said = json["ErrorMessage"].as_str();
        assert!(said.is_some_and(|said| !said.is_empty()), "{line}: {json}");
        return;
    }
    let error = json.as_object().and_then(|json| json.get("Error"));
    for word in ["Code", "Message"] {
        let word = error
            .and_then(|error| error.get(word))
            .and_then(Value::as_str);
        assert!(word.is_some_and(|word| !word.is_empty()), "{line}: {json}");
    }
}
