//! Scripted sources, and a pipeline's results.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_consul::client::{CheckDefinition, HealthStatus, ServiceDefinition};
use discovery_consul::testing::FakeConsul;
use discovery_consul::watch::Datacenters;
use prost::Message;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use crate::assemble::testing::ports;
use crate::pipeline::{Pipeline, PipelineOptions};
use crate::snapshot::{ResourceType, Snapshot, Subscription};
use crate::sources::{
    ConsulSourceOptions, ParsedRegistry, Registry, RegistryError, Sources, parse_registry,
};

/// A scripted registry.
pub(super) struct ScriptedRegistry(mpsc::UnboundedReceiver<String>, String);

impl ScriptedRegistry {
    fn parsed(&self) -> Result<ParsedRegistry, RegistryError> {
        parse_registry(&self.1).map_err(|problems| RegistryError::new(problems.to_string()))
    }
}

#[async_trait]
impl Registry for ScriptedRegistry {
    async fn next(&mut self) -> Result<ParsedRegistry, RegistryError> {
        match self.0.recv().await {
            Some(text) => {
                self.1 = text;
                self.parsed()
            }
            None => std::future::pending().await,
        }
    }

    async fn again(&mut self) -> Result<ParsedRegistry, RegistryError> {
        self.parsed()
    }
}

pub(super) type Snapshots = watch::Receiver<Option<Arc<Snapshot>>>;

pub(super) fn registry() -> (mpsc::UnboundedSender<String>, ScriptedRegistry) {
    let (say, told) = mpsc::unbounded_channel();
    (say, ScriptedRegistry(told, String::new()))
}

pub(super) fn served(snapshots: &Snapshots, kind: ResourceType) -> Vec<String> {
    let snapshot = snapshots.borrow();
    let resources = snapshot
        .iter()
        .flat_map(|snapshot| snapshot.resources(kind).iter());
    resources
        .map(|resource| resource.name().to_string())
        .collect()
}

pub(super) fn ports_of(snapshots: &Snapshots, cluster: &str) -> Vec<u32> {
    let snapshot = snapshots.borrow();
    let resource = snapshot
        .as_ref()
        .unwrap()
        .resources(ResourceType::Endpoint)
        .get(cluster)
        .unwrap();
    let body = resource.body(Subscription::Aggregated).clone();
    ports(&ClusterLoadAssignment::decode(body).unwrap())
}

pub(super) fn hosts(snapshots: &Snapshots) -> Vec<String> {
    let snapshot = snapshots.borrow();
    let resource = snapshot
        .as_ref()
        .unwrap()
        .resources(ResourceType::Route)
        .get("main")
        .unwrap();
    let body = resource.body(Subscription::Aggregated).clone();
    let routes = RouteConfiguration::decode(body).unwrap();
    routes
        .virtual_hosts
        .into_iter()
        .map(|host| host.name)
        .collect()
}

pub(super) async fn until(snapshots: &mut Snapshots, is_so: impl Fn(&Snapshots) -> bool) {
    let wait = async {
        while !is_so(snapshots) {
            snapshots.changed().await.unwrap();
        }
    };
    timeout(Duration::from_secs(60), wait)
        .await
        .expect("it becomes so");
}

pub(super) fn instance(service: &str, port: u16) -> ServiceDefinition {
    let id = format!("{service}-{port}");
    ServiceDefinition::new(service, port)
        .with_id(id.clone())
        .with_address("10.0.0.1")
        .with_check(
            CheckDefinition::ttl(id, Duration::from_secs(600)).with_status(HealthStatus::Passing),
        )
}

/// Returns a registry with this content, and a Consul whose datacenters are all watched.
pub(super) fn consul_says(consul: &FakeConsul, registered: &str) -> Sources {
    let (say, told) = registry();
    say.send(registered.to_owned()).unwrap();
    let mut options = ConsulSourceOptions::default();
    options.watch = options.watch.with_datacenters(Datacenters::All);
    Sources::new()
        .with_registry(told)
        .with_consul(consul.client(), options)
}

/// A pipeline with these options, as soon as it serves something.
pub(super) async fn served_of(sources: Sources, options: PipelineOptions) -> (Pipeline, Snapshots) {
    let pipeline = Pipeline::start(sources, options);
    let mut snapshots = pipeline.snapshots();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    (pipeline, snapshots)
}

/// A place for what is served, which one pipeline after the other has.
pub(super) struct Kept {
    folder: TempDir,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("last")
    }

    pub(super) fn options(&self) -> PipelineOptions {
        PipelineOptions {
            persist: Some(self.path()),
            ..PipelineOptions::default()
        }
    }

    /// Kills a pipeline when it has kept what it serves. That takes half a minute, since it is written while it serves.
    pub(super) async fn by(&self, pipeline: Pipeline) {
        let wait = async {
            while !self.path().exists() {
                sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(600), wait).await.unwrap();
        drop(pipeline);
    }
}
