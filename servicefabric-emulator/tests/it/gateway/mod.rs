//! Tests of the gateway over real sockets: statuses, bodies and headers as clients see them.
#![cfg(feature = "gateway")]

mod changes;
mod faults;
mod health;
mod ids;
mod limits;
mod names;
mod own;
mod paging;
mod placement;
mod presence;
mod reports;
mod secured;
mod service_shapes;
mod shapes;
mod store;
mod streams;
mod time;
mod versions;
mod workloads;

use std::time::Duration;

use serde_json::Value;
use servicefabric_emulator::gateway::{Builder, Emulator};
use servicefabric_emulator::topology::Topology;
use testkit::body;
use testkit::client::{Answer, Connection};

/// The virtual time in which everything is placed and opened.
const SETTLED: Duration = Duration::from_secs(600);

/// The default version of requests.
const VERSION: &str = "9.1";

/// An emulator with helpers for requests.
struct Gateway {
    emulator: Emulator,
}

/// A response, with its body as JSON; null if it is empty.
#[derive(Debug)]
struct Reply {
    status: u16,
    json: Value,
    answer: Answer,
}

fn topology() -> Topology {
    Topology::from_toml(include_str!("shop.toml")).expect("the file describes a cluster")
}

fn builder() -> Builder {
    Emulator::builder(topology())
        .listen("127.0.0.1:0")
        .manual_time()
}

impl Gateway {
    /// Starts a settled shop.
    async fn start() -> Self {
        Self::of(builder()).await
    }

    async fn of(builder: Builder) -> Self {
        let emulator = builder.start().await.expect("nothing is in the way");
        emulator.advance(SETTLED);
        Self { emulator }
    }

    async fn connect(&self) -> Connection {
        Connection::http1(self.emulator.address())
            .await
            .expect("it listens")
    }

    /// Sends a request, with `api-version` added if it is missing.
    async fn send(&self, method: &str, path: &str, text: &str) -> Reply {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = if path.contains("api-version") {
            path.to_owned()
        } else {
            format!("{path}{separator}api-version={VERSION}")
        };
        self.send_as_written(method, &path, text).await
    }

    async fn send_as_written(&self, method: &str, path: &str, text: &str) -> Reply {
        let mut connection = self.connect().await;
        let request = connection
            .request(method, path)
            .header("content-type", "application/json; charset=utf-8")
            .body(body::full(text.to_owned()))
            .expect("a test sends what can be sent");
        let answer = connection.send(request).await.expect("there is an answer");
        Reply::from(answer)
    }

    async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "").await
    }

    async fn post(&self, path: &str, text: impl ToString) -> Reply {
        self.send("POST", path, &text.to_string()).await
    }

    /// Returns the items of a list, which must exist.
    async fn items(&self, path: &str) -> Vec<Value> {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.json);
        reply.json["Items"]
            .as_array()
            .unwrap_or_else(|| panic!("{path} is no list: {}", reply.json))
            .clone()
    }

    /// The id of the first partition of a service.
    async fn partition(&self, service: &str) -> String {
        let partitions = self
            .items(&format!("/Services/{service}/$/GetPartitions"))
            .await;
        text(&partitions[0]["PartitionInformation"]["Id"])
    }

    /// The first replica of a partition, or instance.
    async fn replica(&self, partition: &str) -> Value {
        let path = format!("/Partitions/{partition}/$/GetReplicas");
        self.items(&path).await.swap_remove(0)
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        let json = if answer.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&answer.body)
                .unwrap_or_else(|error| panic!("{error}: {} {}", answer.status, answer.text()))
        };
        Self {
            status: answer.status.as_u16(),
            json,
            answer,
        }
    }
}

impl Reply {
    /// Returns the code of an error. Empty without a body.
    fn code(&self) -> &str {
        self.json["Error"]["Code"].as_str().unwrap_or_default()
    }

    #[track_caller]
    fn expect_error(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.json);
        let message = self.json["Error"]["Message"].as_str();
        assert!(
            message.is_some_and(|message| !message.is_empty()),
            "{}",
            self.json
        );
    }

    #[track_caller]
    fn expect_empty(&self, status: u16) {
        assert_eq!((self.status, &self.json), (status, &Value::Null));
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// Returns the keys of an object, in the written order.
fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object();
    let mut keys: Vec<&str> = object
        .into_iter()
        .flat_map(|object| object.keys().map(String::as_str))
        .collect();
    keys.sort_unstable();
    keys
}

/// Checks that a text is a signed number, as 64-bit numbers are written.
#[track_caller]
fn expect_wide(value: &Value) {
    let text = text(value);
    assert!(
        text.parse::<i64>().is_ok(),
        "{text} is no number of 64 bits"
    );
}
