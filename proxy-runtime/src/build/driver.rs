//! What keeps a proxy up to date.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use proxy_model::Snapshot;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::health::Probe;
use crate::observe::targets;
use crate::probing::ActiveChecks;
use crate::proxy::Shared;

/// How often rates are measured.
const SAMPLING: Duration = Duration::from_secs(1);

/// Keeps a [`Proxy`](crate::Proxy) up to date: it follows the source of configurations, probes destinations, and
/// measures rates once a second.
///
/// It is a future that the caller spawns, on a runtime of its own liking; a multi-threaded one is good, so that building
/// a large configuration holds up no requests. It ends when the proxy and all its services are gone. Dropped before
/// that, it stops all probes; the proxy then goes on with the configuration and the health that it last knew.
#[must_use = "a proxy whose driver is not spawned follows no changes and probes nothing"]
pub struct Driver(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        snapshots: Option<watch::Receiver<Arc<Snapshot>>>,
        probe: Arc<dyn Probe>,
        alive: watch::Receiver<()>,
    ) -> Self {
        Self(Box::pin(async move {
            let mut alive = alive;
            tokio::select! {
                // Nothing is ever sent; it ends when the last handle is dropped.
                _ = alive.changed() => {}
                () = drive(&shared, snapshots, probe) => {}
            }
        }))
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

async fn drive(
    shared: &Arc<Shared>,
    snapshots: Option<watch::Receiver<Arc<Snapshot>>>,
    probe: Arc<dyn Probe>,
) {
    tokio::join!(
        follow(shared, snapshots),
        check(shared, probe),
        sample(shared),
    );
}

/// Publishes what the source says.
async fn follow(shared: &Shared, snapshots: Option<watch::Receiver<Arc<Snapshot>>>) {
    let Some(mut snapshots) = snapshots else {
        return;
    };
    while snapshots.changed().await.is_ok() {
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        // A refusal was logged and is in the history; the current configuration goes on serving.
        let _ = shared.publish(snapshot);
    }
    tracing::info!(
        target: targets::CONFIG,
        "the source of configurations is gone, the last one goes on serving"
    );
}

/// Probes destinations, for whatever generation serves.
async fn check(shared: &Arc<Shared>, probe: Arc<dyn Probe>) {
    let mut generations = shared.generations();
    let mut checks = ActiveChecks::new(Arc::clone(shared), probe);
    loop {
        generations.borrow_and_update();
        checks.follow();
        tokio::select! {
            changed = generations.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = checks.run() => {}
        }
    }
}

/// Measures rates.
async fn sample(shared: &Shared) {
    let mut ticks = interval(SAMPLING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        crate::status::sample(&shared.load_full()).await;
    }
}
