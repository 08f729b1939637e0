//! Real programs in replicas.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use servicefabric_emulator::cluster::{OpenedReplica, ReplicaRef};
use servicefabric_emulator::gateway::{BoxFuture, Endpoints, Responder, Workload};
use testkit::client::Connection;
use testkit::time::eventually;
use tokio::sync::Semaphore;

use super::{Gateway, builder, text};

impl Gateway {
    /// Returns the ready instances of `Shop~Web`.
    async fn ready(&self) -> Vec<Value> {
        let partition = self.partition("Shop~Web").await;
        let path = format!("/Partitions/{partition}/$/GetReplicas");
        let mut replicas = self.items(&path).await;
        replicas.retain(|replica| replica["ReplicaStatus"] == "Ready");
        replicas
    }

    /// Waits until `count` instances are ready, while the cluster's time moves on.
    async fn until_ready(&self, count: usize) -> Vec<Value> {
        eventually(format!("{count} instances are ready"), async || {
            self.emulator.advance(Duration::from_secs(5));
            self.ready().await.len() == count
        })
        .await;
        self.ready().await
    }
}

fn url(replica: &Value, listener: &str) -> String {
    let address: Value = serde_json::from_str(&text(&replica["Address"])).expect("JSON in JSON");
    text(&address["Endpoints"][listener])
}

#[tokio::test]
async fn the_responder_names_its_partition() {
    let gateway = Gateway::of(builder().workload(Responder::new())).await;
    gateway.until_ready(2).await;
    let mut found = std::collections::BTreeSet::new();
    for service in ["Shop~Regions", "Shop~Cart", "Shop~Web"] {
        let partitions = gateway
            .items(&format!("/Services/{service}/$/GetPartitions"))
            .await;
        for partition in partitions {
            let id = text(&partition["PartitionInformation"]["Id"]);
            let replicas = gateway
                .items(&format!("/Partitions/{id}/$/GetReplicas"))
                .await;
            let replica = replicas
                .iter()
                .find(|replica| replica["ReplicaStatus"] == "Ready");
            let url = url(replica.expect("one is ready"), "http");
            let address = url
                .trim_start_matches("http://")
                .trim_end_matches('/')
                .parse();
            let mut connection = Connection::http1(address.expect("an address"))
                .await
                .expect("it listens");
            let said: Value = connection.get("/").await.expect("it answers").json();
            assert_eq!(said["Partition"], id);
            found.insert(said["Keys"].as_str().map(str::to_owned));
        }
    }
    let expected = [
        None,
        Some("0 to 49"),
        Some("50 to 99"),
        Some("eu"),
        Some("us"),
    ];
    assert!(found.iter().map(Option::as_deref).eq(expected), "{found:?}");
}

#[tokio::test]
async fn the_responder_says_who_answers() {
    let gateway = Gateway::of(builder().workload(Responder::new())).await;
    for replica in gateway.until_ready(2).await {
        let url = url(&replica, "http");
        let authority = url.strip_prefix("http://").expect("it is plain HTTP");
        let address = authority.trim_end_matches('/').parse().expect("an address");
        let mut connection = Connection::http1(address).await.expect("it listens");
        let said: Value = connection
            .get("/hello?x=1")
            .await
            .expect("it answers")
            .json();
        assert_eq!(said["Service"], "fabric:/Shop/Web");
        assert_eq!(said["Replica"], replica["InstanceId"]);
        assert_eq!(said["Node"], replica["NodeName"]);
        assert_eq!(
            (&said["Listener"], &said["Path"]),
            (&json!("http"), &json!("/hello"))
        );
    }
    let urls = gateway
        .ready()
        .await
        .iter()
        .map(|replica| url(replica, "http"))
        .collect::<Vec<_>>();
    gateway.emulator.shutdown().await;
    for url in urls {
        let address = url
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        assert!(
            Connection::http1(address).await.is_err(),
            "{url} still listens"
        );
    }
}

#[tokio::test]
async fn what_is_scaled_in_is_closed() {
    let gateway = Gateway::of(builder().workload(Responder::new())).await;
    let before = gateway.until_ready(2).await;
    gateway
        .post("/emulator/services/Shop~Web/$/scale", json!({"Count": 1}))
        .await
        .expect_empty(200);
    let after = gateway.until_ready(1).await;
    for replica in before {
        let url = url(&replica, "http");
        let address = url
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        let stays = after[0]["InstanceId"] == replica["InstanceId"];
        eventually(format!("{url} listens: {stays}"), async || {
            Connection::http1(address).await.is_ok() == stays
        })
        .await;
    }
}

/// A workload that logs its calls, and opens only permitted replicas.
#[derive(Default)]
struct Scripted {
    log: Mutex<Vec<String>>,
    rejections: Mutex<BTreeMap<String, u32>>,
    allowed: Option<Semaphore>,
}

#[derive(Clone)]
struct Shared(Arc<Scripted>);

impl Scripted {
    fn note(&self, line: String) {
        self.log.lock().push(line);
    }

    fn count(&self, beginning: &str) -> usize {
        let log = self.log.lock();
        log.iter()
            .filter(|line| line.starts_with(beginning))
            .count()
    }
}

impl Workload for Shared {
    fn open(&self, replica: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>> {
        Box::pin(async move {
            let service = replica.service.as_str();
            self.0.note(format!("open {service}"));
            if let Some(allowed) = &self.0.allowed {
                allowed.acquire().await.map_err(io::Error::other)?.forget();
            }
            let rejected = {
                let mut rejections = self.0.rejections.lock();
                rejections.get_mut(service).is_some_and(|left| {
                    let rejected = *left > 0;
                    *left = left.saturating_sub(1);
                    rejected
                })
            };
            if rejected {
                return Err(io::Error::other("not today"));
            }
            self.0.note(format!("opened {service}"));
            Ok(Endpoints::one("http", format!("http://{}:1", replica.node)))
        })
    }

    fn close<'a>(&'a self, replica: &'a ReplicaRef) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.0.note(format!("close {replica}")) })
    }
}

#[tokio::test]
async fn a_replica_is_ready_when_its_workload_is() {
    let scripted = Arc::new(Scripted {
        allowed: Some(Semaphore::new(0)),
        ..Scripted::default()
    });
    let gateway = Gateway::of(builder().workload(Shared(Arc::clone(&scripted)))).await;
    eventually("all are asked to open", async || {
        gateway.emulator.advance(Duration::from_secs(1));
        scripted.count("open fabric:/Shop/Web") == 2
    })
    .await;
    assert!(gateway.ready().await.is_empty());
    scripted
        .allowed
        .as_ref()
        .expect("it is there")
        .add_permits(1_000);
    let ready = gateway.until_ready(2).await;
    let node = text(&ready[0]["NodeName"]);
    assert_eq!(url(&ready[0], "http"), format!("http://{node}:1"));
    gateway.emulator.shutdown().await;
    assert_eq!(scripted.count("close "), scripted.count("opened "));
}

#[tokio::test]
async fn a_workload_that_fails_is_tried_again() {
    let rejections = BTreeMap::from([("fabric:/Shop/Web".to_owned(), 3)]);
    let scripted = Arc::new(Scripted {
        rejections: Mutex::new(rejections),
        ..Scripted::default()
    });
    let gateway = Gateway::of(builder().workload(Shared(Arc::clone(&scripted)))).await;
    gateway.until_ready(2).await;
    assert!(
        scripted.count("open fabric:/Shop/Web") >= 5,
        "{:?}",
        scripted.log
    );
    assert_eq!(scripted.count("opened fabric:/Shop/Web"), 2);
    gateway.emulator.shutdown().await;
}

#[tokio::test]
async fn what_opens_when_it_is_told_to_close_is_closed() {
    let scripted = Arc::new(Scripted {
        allowed: Some(Semaphore::new(0)),
        ..Scripted::default()
    });
    let gateway = Gateway::of(builder().workload(Shared(Arc::clone(&scripted)))).await;
    eventually("all are asked to open", async || {
        gateway.emulator.advance(Duration::from_secs(1));
        scripted.count("open fabric:/Shop/Web") == 2
    })
    .await;
    // Nothing is ever permitted: every opening is cancelled, and then closed.
    let asked = scripted.count("open ");
    gateway.emulator.shutdown().await;
    assert_eq!(scripted.count("opened "), 0);
    assert_eq!(scripted.count("close "), asked);
}

/// A workload that panics once, then opens.
struct Panics(Mutex<bool>);

impl Workload for Panics {
    fn open(&self, replica: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>> {
        let web = replica.service.as_str() == "fabric:/Shop/Web";
        let first = web && {
            let mut first = self.0.lock();
            std::mem::take(&mut *first)
        };
        Box::pin(async move {
            assert!(!first, "as the test wants it");
            Ok(Endpoints::Raw("anything".to_owned()))
        })
    }

    fn close<'a>(&'a self, _: &'a ReplicaRef) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_workload_that_panics_has_failed_and_nothing_else_has() {
    let gateway = Gateway::of(builder().workload(Panics(Mutex::new(true)))).await;
    let ready = gateway.until_ready(2).await;
    assert_eq!(ready[0]["Address"], "anything");
    gateway.emulator.shutdown().await;
}

/// A workload that opens at once, and never closes.
struct Stuck(Arc<Semaphore>);

impl Workload for Stuck {
    fn open(&self, _: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>> {
        self.0.add_permits(1);
        Box::pin(async { Ok(Endpoints::Raw("anything".to_owned())) })
    }

    fn close<'a>(&'a self, _: &'a ReplicaRef) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_never_closes_does_not_keep_the_emulator() {
    let opened = Arc::new(Semaphore::new(0));
    let gateway = Gateway::of(builder().workload(Stuck(Arc::clone(&opened)))).await;
    opened.acquire().await.expect("it stays open").forget();
    let begun = tokio::time::Instant::now();
    gateway.emulator.shutdown().await;
    assert!(begun.elapsed() >= Duration::from_secs(10));
}

#[tokio::test]
async fn a_responder_that_is_full_says_what_to_do() {
    use servicefabric_emulator::cluster::Cluster;
    use servicefabric_emulator::cluster::Effect;
    use servicefabric_emulator::hosting::Timestamp;
    let mut cluster = Cluster::with_workloads(&super::topology()).expect("a cluster");
    cluster.advance(Timestamp::from_secs(600));
    let mut opened = cluster
        .take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Open(replica) if replica.listeners.len() == 1 => Some(replica),
            _ => None,
        });
    let (first, second) = (opened.next().unwrap(), opened.next().unwrap());
    let responder = Responder::new().at_most(1);
    let key = first.replica;
    responder.open(first).await.expect("there is room");
    let error = responder.open(second.clone()).await.unwrap_err();
    assert!(error.to_string().contains("ulimit"), "{error}");
    responder.close(&key).await;
    responder.open(second).await.expect("there is room again");
}
