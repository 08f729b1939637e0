//! A scripted probe, and proxies that use it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use proxy_model::Snapshot;
use proxy_model::compiled::{Cluster, Destination};
use tokio::time::{Instant, sleep};

use crate::fixtures::snapshot;
use crate::health::{Health, Probe, ProbeError};
use crate::status::DestinationStatus;
use crate::{Proxy, ProxyBuilder};

/// What a destination answers to a probe.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Status(u16),
    Refused,
    Never,
    Panics,
    After(Duration),
}

/// A probe that follows a script and remembers when it was asked about what.
#[derive(Default)]
pub(super) struct Script {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<(String, Instant)>>,
}

impl Script {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// What `destination` answers from now on; without a script all is well.
    pub(super) fn answer(&self, destination: &str, answer: Answer) {
        self.answers
            .lock()
            .unwrap()
            .insert(destination.into(), answer);
    }

    /// How often `destination` was asked.
    pub(super) fn count(&self, destination: &str) -> usize {
        self.times(destination).len()
    }

    pub(super) fn times(&self, destination: &str) -> Vec<Instant> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|(id, _)| id == destination)
            .map(|(_, at)| *at)
            .collect()
    }
}

#[async_trait]
impl Probe for Script {
    async fn probe(
        &self,
        _: &Cluster,
        destination: &Destination,
    ) -> Result<StatusCode, ProbeError> {
        let id = destination.id().to_string();
        self.asked
            .lock()
            .unwrap()
            .push((id.clone(), Instant::now()));
        let answer = self.answers.lock().unwrap().get(&id).copied();
        match answer.unwrap_or(Answer::Status(200)) {
            Answer::Status(status) => Ok(StatusCode::from_u16(status).unwrap()),
            Answer::Refused => Err(ProbeError::NoAnswer("connection refused".into())),
            Answer::Never => std::future::pending().await,
            Answer::Panics => panic!("the script says so"),
            Answer::After(delay) => {
                sleep(delay).await;
                Ok(StatusCode::OK)
            }
        }
    }
}

/// One cluster whose check has these settings, with destinations of these ids.
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

/// Lets a round pass, whatever the jitter: an interval is at most a tenth longer.
pub(super) async fn a_round() {
    sleep(Duration::from_secs(12)).await;
}
