use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Duration, Instant, sleep, sleep_until, timeout};

use super::shared::{Shared, TURN, Tick};
use super::workload::{Endpoints, Workload};
use crate::cluster::{Effect, OpenedReplica, ReplicaRef};
use crate::gateway::server::{Seldom, until};

/// The time limit for closing all workloads when the emulator stops.
const CLOSE: Duration = Duration::from_secs(10);

/// The task that moves a cluster with the clock, and serves its requests to workloads.
pub(super) struct Driver {
    shared: Arc<Shared>,
    workload: Option<Arc<dyn Workload>>,
    replicas: BTreeMap<ReplicaRef, DrivenReplica>,
    tasks: JoinSet<(ReplicaRef, Done)>,
    behind: Seldom,
    failures: Seldom,
}

/// The workload of a replica.
struct DrivenReplica {
    stage: Stage,
    /// The replica to open as soon as this one is closed.
    next: Option<OpenedReplica>,
}

enum Stage {
    Opening(AbortHandle),
    Open,
    /// The opening was cancelled, but has not ended yet.
    Cutting(AbortHandle),
    Closing(AbortHandle),
}

impl DrivenReplica {
    fn task(&self) -> Option<Id> {
        match &self.stage {
            Stage::Open => None,
            Stage::Opening(task) | Stage::Cutting(task) | Stage::Closing(task) => Some(task.id()),
        }
    }
}

enum Done {
    Opened(io::Result<Endpoints>),
    Closed,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, workload: Option<Arc<dyn Workload>>) -> Self {
        Self {
            shared,
            workload,
            replicas: BTreeMap::new(),
            tasks: JoinSet::new(),
            behind: Seldom::default(),
            failures: Seldom::default(),
        }
    }

    /// Runs until the stop signal, then closes all workloads.
    pub(super) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let Tick {
                effects,
                due,
                caught_up,
            } = self.shared.tick();
            for effect in effects {
                self.dispatch(effect);
            }
            // The pause lets requests take the lock between two turns.
            if !caught_up {
                if self.behind.tell() {
                    tracing::warn!(
                        "so much happens that the cluster falls behind its clock; a lower speed would help"
                    );
                }
                tokio::select! {
                    () = until(&mut stopped) => break,
                    Some(done) = self.tasks.join_next() => self.done(done),
                    () = sleep(TURN) => {}
                }
                continue;
            }
            let due = due.and_then(|due| self.shared.clock().instant(due));
            tokio::select! {
                () = until(&mut stopped) => break,
                () = self.shared.changed() => {}
                () = at(due) => {}
                Some(done) = self.tasks.join_next() => self.done(done),
            }
        }
        self.close_all().await;
    }

    fn dispatch(&mut self, effect: Effect) {
        match effect {
            Effect::Open(replica) => self.open(replica),
            Effect::Close { replica, .. } => self.close(replica),
            Effect::Role { .. } => {}
        }
    }

    fn open(&mut self, opened: OpenedReplica) {
        let Some(workload) = self.workload.clone() else {
            return;
        };
        let key = opened.replica;
        if let Some(replica) = self.replicas.get_mut(&key) {
            if matches!(replica.stage, Stage::Cutting(_) | Stage::Closing(_)) {
                // The replica opens again after its previous workload has ended.
                replica.next = Some(opened);
            }
            return;
        }
        let task = self.tasks.spawn(async move {
            let result = workload.open(opened).await;
            (key, Done::Opened(result))
        });
        let replica = DrivenReplica {
            stage: Stage::Opening(task),
            next: None,
        };
        self.replicas.insert(key, replica);
    }

    fn close(&mut self, key: ReplicaRef) {
        let Some(replica) = self.replicas.get_mut(&key) else {
            return;
        };
        replica.next = None;
        match &replica.stage {
            Stage::Opening(task) => {
                task.abort();
                // The task may have opened the workload already, so its end is awaited.
                replica.stage = Stage::Cutting(task.clone());
            }
            Stage::Open => self.begin_to_close(key),
            Stage::Cutting(_) | Stage::Closing(_) => {}
        }
    }

    fn begin_to_close(&mut self, key: ReplicaRef) {
        let (Some(workload), Some(replica)) = (self.workload.clone(), self.replicas.get_mut(&key))
        else {
            return;
        };
        replica.stage = Stage::Closing(self.tasks.spawn(async move {
            workload.close(&key).await;
            (key, Done::Closed)
        }));
    }

    fn done(&mut self, done: Result<(ReplicaRef, Done), JoinError>) {
        match done {
            Ok((key, Done::Closed)) => self.closed(key),
            Ok((key, Done::Opened(result))) => self.opened(key, result),
            Err(error) => {
                // A failed task does not return its key, so the replica is found by the id of the task.
                let ended = error.id();
                let key = self
                    .replicas
                    .iter()
                    .find(|(_, replica)| replica.task() == Some(ended))
                    .map(|(key, _)| *key);
                if error.is_panic() {
                    tracing::error!(%error, "a workload panicked");
                }
                match key.and_then(|key| Some((key, &self.replicas.get(&key)?.stage))) {
                    Some((key, Stage::Closing(_))) => self.closed(key),
                    Some((key, _)) => {
                        // For a cancelled opening, this only starts the closing.
                        self.opened(key, Err(io::Error::other("the workload panicked")));
                    }
                    None => {}
                }
            }
        }
    }

    fn closed(&mut self, key: ReplicaRef) {
        let next = self.replicas.remove(&key).and_then(|replica| replica.next);
        if let Some(next) = next {
            self.open(next);
        }
    }

    fn opened(&mut self, key: ReplicaRef, result: io::Result<Endpoints>) {
        let Some(replica) = self.replicas.get_mut(&key) else {
            return;
        };
        if matches!(replica.stage, Stage::Cutting(_)) {
            // The replica was dropped meanwhile, so the result does not matter.
            return self.begin_to_close(key);
        }
        replica.stage = Stage::Open;
        let told = self.shared.with_cluster(|cluster| match result {
            Ok(endpoints) => cluster.publish_address(key, &endpoints.address()),
            Err(error) => {
                if self.failures.tell() {
                    tracing::warn!(replica = %key, %error, "a workload did not open; further ones \
                        are logged rarely");
                } else {
                    tracing::debug!(replica = %key, %error, "a workload did not open");
                }
                cluster.open_failed(key, &error.to_string())
            }
        });
        if let Err(error) = told {
            tracing::debug!(replica = %key, %error, "the replica does not exist any more");
        }
    }

    /// Closes all workloads, for at most [`CLOSE`]: a workload that never ends must not keep the emulator
    /// from stopping.
    async fn close_all(&mut self) {
        if timeout(CLOSE, self.close_each()).await.is_err() {
            let left: Vec<String> = self.replicas.keys().map(ToString::to_string).collect();
            tracing::warn!(replicas = ?left, "workloads did not close within {CLOSE:?} and are cut");
            self.tasks.shutdown().await;
        }
    }

    async fn close_each(&mut self) {
        let open: Vec<ReplicaRef> = self.replicas.keys().copied().collect();
        for key in open {
            self.close(key);
        }
        // Replicas whose opening was cancelled are closed when its task ends.
        while let Some(done) = self.tasks.join_next().await {
            self.done(done);
        }
    }
}

/// Sleeps until `due`. Without a time, sleeps forever.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
