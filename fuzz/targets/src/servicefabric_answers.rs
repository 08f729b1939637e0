//! Answers of a Service Fabric gateway.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_servicefabric::client::{
    BearerToken, Client, ClientOptions, StaticToken, Transport, TransportError, TransportErrorKind,
};
use discovery_servicefabric::model::{
    HealthInformation, HealthState, PartitionInformation, PartitionKind, ServiceKind,
};
use discovery_servicefabric::{CallError, CallErrorKind, ClusterCalls, HealthEntity};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::input::{MAX_BYTES, paused};

/// The credential of the client. Answers may repeat it.
const TOKEN: &str = "eyJ-a-secret-that-nobody-may-read";

/// Maximum duration of a call with all its retries.
const BUDGET: Duration = Duration::from_secs(60);

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 20;

/// Maximum number of items of a list.
const MAX_ITEMS: usize = 1_000;

/// Maximum length of a message in characters: repeated texts are cut.
const MAX_MESSAGE: usize = 2_000;

/// Fuzzes a sequence of answers, separated by lines `---`. Each has a line with the status and a
/// header, then the body. A failure can stand in place of a status: `connect`, `interrupted`,
/// `hang`, `certificate`. After the last answer the gateway is unreachable.
///
/// ```text
/// 200
/// {"ContinuationToken":"2","Items":[]}
/// ---
/// 503 Retry-After: 3
/// {"Error":{"Code":"FABRIC_E_NOT_READY","Message":"…"}}
/// ```
///
/// The properties of each call with such answers:
///
/// * It returns within its time limit, after few requests. Lists keep to the maximum number of
///   items.
/// * An error is short, on one line, without terminal control characters and without the
///   credential.
/// * An item counts as gone only if the gateway reports that with its own error code.
pub fn servicefabric_answers(data: &[u8]) {
    let answers = read(&data[..data.len().min(MAX_BYTES)]);
    for call in CALLS {
        paused().block_on(check(call, &answers));
    }
}

const CALLS: [&str; 12] = [
    "types",
    "applications",
    "service types",
    "manifest",
    "services",
    "partitions",
    "replicas",
    "resolve",
    "properties",
    "chunk",
    "report",
    "version",
];

/// The outcome of a request.
#[derive(Clone, Debug)]
enum Act {
    Answer(StatusCode, Option<(HeaderName, HeaderValue)>, Bytes),
    Fail(TransportErrorKind),
    Hang,
}

fn read(data: &[u8]) -> Vec<Act> {
    let mut blocks = vec![Vec::new()];
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        match line {
            b"---\n" => blocks.push(Vec::new()),
            _ => blocks
                .last_mut()
                .expect("there is one")
                .extend_from_slice(line),
        }
    }
    blocks.iter().map(|block| act(block)).collect()
}

fn act(block: &[u8]) -> Act {
    let end = block
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(block.len());
    let (line, rest) = block.split_at(end);
    let body = Bytes::copy_from_slice(rest.strip_prefix(b"\n").unwrap_or_default());
    let line = String::from_utf8_lossy(line);
    let (first, header) = line.split_once(' ').unwrap_or((&line, ""));
    match first {
        "connect" => return Act::Fail(TransportErrorKind::Connect),
        "interrupted" => return Act::Fail(TransportErrorKind::Interrupted),
        "certificate" => return Act::Fail(TransportErrorKind::CertificateRejected),
        "hang" => return Act::Hang,
        _ => {}
    }
    let status = first
        .parse()
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok());
    let header = header.split_once(": ").and_then(|(name, value)| {
        Some((
            name.parse().ok()?,
            HeaderValue::from_bytes(value.as_bytes()).ok()?,
        ))
    });
    Act::Answer(status.unwrap_or(StatusCode::OK), header, body)
}

/// A gateway that performs one action after the other.
struct Gateway {
    acts: Mutex<VecDeque<Act>>,
    requests: Arc<Mutex<usize>>,
}

#[async_trait]
impl Transport for Gateway {
    async fn send(
        &self,
        request: Request<Bytes>,
        _: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        assert_eq!(request.uri().host(), Some("gateway"));
        *self.requests.lock() += 1;
        let act = self.acts.lock().pop_front();
        match act {
            Some(Act::Answer(status, header, body)) => {
                let mut response = Response::new(body);
                *response.status_mut() = status;
                response.headers_mut().extend(header);
                Ok(response)
            }
            Some(Act::Fail(kind)) => Err(TransportError::new(kind, "as the input says")),
            Some(Act::Hang) => std::future::pending().await,
            None => Err(TransportError::new(
                TransportErrorKind::Connect,
                "there is no more",
            )),
        }
    }
}

async fn check(call: &str, answers: &[Act]) {
    let acts: VecDeque<Act> = answers.iter().cloned().collect();
    let requests = Arc::new(Mutex::new(0));
    let gateway = Gateway {
        acts: Mutex::new(acts),
        requests: Arc::clone(&requests),
    };
    let token = BearerToken::new(TOKEN).expect("it is one");
    let options = ClientOptions::default()
        .with_budget(BUDGET)
        .with_max_pages(MAX_PAGES)
        .with_max_items(MAX_ITEMS);
    let client = Client::builder("https://gateway:19080")
        .options(options)
        .token_source(StaticToken::new(token))
        .transport(gateway)
        .build()
        .expect("the endpoint is one");
    let begin = Instant::now();
    let result = ask(&client, call).await;
    let took = begin.elapsed();
    assert!(
        took <= BUDGET + Duration::from_secs(1),
        "{call} took {took:?}"
    );
    // Three attempts for each page and one with another token, in two forms, plus the query for the
    // reason.
    let requests = *requests.lock();
    assert!(requests <= answers.len() + 10, "{requests} requests");
    match result {
        Ok(items) => assert!(items <= MAX_ITEMS, "{call} has {items} items"),
        Err(error) => check_error(&error, answers),
    }
}

/// Makes a call. Returns the number of items in the answer.
async fn ask(client: &Client, call: &str) -> Result<usize, CallError> {
    let mut range = PartitionInformation::default();
    range.service_partition_kind = PartitionKind::Int64Range;
    range.low_key = Some(-1);
    Ok(match call {
        "types" => client.application_types().await?.len(),
        "applications" => client.applications().await?.len(),
        "service types" => client.service_types("ShopType", "1.0").await?.len(),
        "services" => client.services("Shop").await?.len(),
        "partitions" => client.partitions("Shop~Web").await?.len(),
        "replicas" => client.replicas("p1").await?.len(),
        "properties" => client.properties("Shop~Web").await?.len(),
        "manifest" => client
            .service_manifest("ShopType", "1.0", "Pkg")
            .await
            .map(|_| 1)?,
        "resolve" => client
            .resolve("Shop~Web", &range, Some("7"))
            .await
            .map(|_| 1)?,
        "version" => client.cluster_version().await.map(|_| 1)?,
        "report" => {
            let health = HealthInformation::new("fuzz", "routes", HealthState::Warning);
            let replica = HealthEntity::Replica {
                partition_id: "p1".to_owned(),
                replica_id: 7,
                kind: ServiceKind::Stateful,
            };
            client
                .report_health(&replica, &health, true)
                .await
                .map(|()| 0)?
        }
        _ => {
            let services = client.replica_ids().await?;
            assert!(services.is_sorted_by_key(|service| &service.service));
            for service in &services {
                assert!(service.partitions.is_sorted());
            }
            // A chunk is one answer, not a list of pages.
            1
        }
    })
}

fn check_error(error: &CallError, answers: &[Act]) {
    let mut said = vec![error.chain(), error.call().to_owned()];
    said.extend(error.code().map(str::to_owned));
    for text in said {
        assert!(!text.is_empty() || error.code() == Some(""), "{error:?}");
        assert!(text.chars().count() <= MAX_MESSAGE, "{text}");
        let commands = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}');
        assert!(!text.contains(commands), "{text:?}");
        assert!(!text.contains(TOKEN), "{text}");
    }
    if error.is_gone() {
        let says_so = answers.iter().any(|act| match act {
            Act::Answer(StatusCode::NO_CONTENT, ..) => true,
            Act::Answer(StatusCode::NOT_FOUND, _, body) => {
                body.windows(9).any(|word| word == b"FABRIC_E_")
            }
            _ => false,
        });
        assert!(says_so, "{error}");
    }
    assert_eq!(error.is_gone(), error.kind() == CallErrorKind::Gone);
}
