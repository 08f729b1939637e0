//! A scripted probe, and proxies that use it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use parking_lot::Mutex;
use proxy_model::Snapshot;
use proxy_model::compiled::{Cluster, Destination};
use tokio::time::{Instant, sleep};

use crate::Proxy;
use crate::build::ProxyBuilder;
use crate::fixtures::snapshot;
use crate::health::{Health, Probe, ProbeError};
use crate::status::DestinationStatus;

/// The response of a destination to a probe.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Status(u16),
    Rejected,
    Never,
    Panics,
    After(Duration),
}

/// A probe that follows a script and records its calls.
#[derive(Default)]
pub(super) struct Script {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<Asked>>,
    under_way: AtomicUsize,
}

/// One probe.
struct Asked {
    destination: String,
    path: String,
    at: Instant,
}

impl Script {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Sets the response of `destination` from now on. Default: 200.
    pub(super) fn answer(&self, destination: &str, answer: Answer) {
        self.answers.lock().insert(destination.into(), answer);
    }

    /// Sets the response of `destination` for `path` from now on, in preference to the general one.
    pub(super) fn answer_at(&self, destination: &str, path: &str, answer: Answer) {
        self.answer(&format!("{destination}{path}"), answer);
    }

    /// The path of each probe of `destination`.
    pub(super) fn paths(&self, destination: &str) -> Vec<String> {
        let asked = self.asked.lock();
        let asked = asked
            .iter()
            .filter(|asked| asked.destination == destination);
        asked.map(|asked| asked.path.clone()).collect()
    }

    /// Number of probes that have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    /// Number of probes of `destination`.
    pub(super) fn count(&self, destination: &str) -> usize {
        self.times(destination).len()
    }

    pub(super) fn times(&self, destination: &str) -> Vec<Instant> {
        self.asked
            .lock()
            .iter()
            .filter(|asked| asked.destination == destination)
            .map(|asked| asked.at)
            .collect()
    }
}

#[async_trait]
impl Probe for Script {
    async fn probe(
        &self,
        cluster: &Cluster,
        destination: &Destination,
    ) -> Result<StatusCode, ProbeError> {
        let _under_way = UnderWay::begin(&self.under_way);
        let id = destination.id().to_string();
        let path = cluster.active_check().unwrap().path_at(destination);
        self.asked.lock().push(Asked {
            destination: id.clone(),
            path: path.to_owned(),
            at: Instant::now(),
        });
        let answers = self.answers.lock().clone();
        let answer = answers
            .get(&format!("{id}{path}"))
            .or_else(|| answers.get(&id));
        match answer.copied().unwrap_or(Answer::Status(200)) {
            Answer::Status(status) => Ok(StatusCode::from_u16(status).unwrap()),
            Answer::Rejected => Err(ProbeError::NoAnswer("connection refused".into())),
            Answer::Never => std::future::pending().await,
            Answer::Panics => panic!("the script says so"),
            Answer::After(delay) => {
                sleep(delay).await;
                Ok(StatusCode::OK)
            }
        }
    }
}

/// Counts a probe until it ends or is dropped.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A cluster with these settings of its check, and destinations with these ids.
pub(super) fn checked(settings: &str, destinations: &[&str]) -> String {
    let destinations: Vec<_> = destinations
        .iter()
        .map(|id| format!(r#""{id}":{{"Address":"http://{id}.example/"}}"#))
        .collect();
    format!(
        r#"{{"Clusters":{{"c":{{"HealthCheck":{{"Active":{{"Enabled":true{settings}}}}},
            "Destinations":{{{}}}}}}}}}"#,
        destinations.join(",")
    )
}

pub(super) fn start(script: &Arc<Script>, json: &str) -> Proxy {
    start_with(Proxy::builder(), script, snapshot(json))
}

pub(super) fn start_with(
    builder: ProxyBuilder,
    script: &Arc<Script>,
    snapshot: Arc<Snapshot>,
) -> Proxy {
    let builder = builder
        .probe(Arc::<Script>::clone(script))
        .random_seed(1)
        .snapshot(snapshot);
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    proxy
}

pub(super) fn status(proxy: &Proxy, id: &str) -> DestinationStatus {
    let cluster = proxy.cluster(&"c".into()).unwrap();
    cluster
        .destinations
        .into_iter()
        .find(|d| d.id == *id)
        .unwrap()
}

pub(super) fn health(proxy: &Proxy, id: &str) -> Health {
    status(proxy, id).health
}

/// Waits for a cycle with any jitter: an interval is at most a tenth longer.
pub(super) async fn a_round() {
    sleep(Duration::from_secs(12)).await;
}
