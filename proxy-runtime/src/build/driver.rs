//! The background work of a proxy.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use proxy_model::Snapshot;
use tokio::sync::watch;
#[cfg(feature = "tls")]
use tokio::time::sleep;
use tokio::time::{MissedTickBehavior, interval};

use crate::health::Probe;
use crate::observe::targets;
use crate::probing::{ActiveChecks, AgentChecks};
use crate::proxy::Shared;

/// Interval at which rates are measured.
const SAMPLING: Duration = Duration::from_secs(1);

/// Interval at which files of certificates are checked. They are renewed days before they expire.
#[cfg(feature = "tls")]
const RENEWAL: Duration = Duration::from_secs(5);

/// Keeps a [`Proxy`](crate::Proxy) up to date: follows the channel of configurations, probes
/// destinations, measures rates once a second, and reads certificates for destinations again when
/// their files change.
///
/// The caller spawns this future on a runtime of its choice. Prefer a multi-threaded one: compiling
/// a large configuration then delays no requests. It completes when the proxy and all its services
/// are dropped. Dropping it earlier stops all probes; the proxy keeps its last configuration and
/// health.
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
                // No value is ever sent; the channel closes when the last handle is dropped.
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
    // One task for all, so that dropping the driver ends all of them.
    tokio::join!(
        follow(shared, snapshots),
        check(shared, probe),
        check_agents(shared),
        sample(shared),
        chart(shared),
        renew(shared),
    );
}

/// Publishes each configuration of the channel.
async fn follow(shared: &Shared, snapshots: Option<watch::Receiver<Arc<Snapshot>>>) {
    let Some(mut snapshots) = snapshots else {
        return;
    };
    while snapshots.changed().await.is_ok() {
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        // Files are read apart from this runtime's threads.
        #[cfg(feature = "tls")]
        let _read = match shared.tls() {
            Some(tls) => tls.read_ahead(&snapshot).await,
            None => Vec::new(),
        };
        // A rejection is logged and in the history; the current configuration keeps serving.
        let _ = shared.publish(snapshot);
    }
    tracing::info!(
        target: targets::CONFIG,
        "the source of configurations has ended; the last configuration stays active"
    );
}

/// Probes the destinations of the active generation.
async fn check(shared: &Arc<Shared>, probe: Arc<dyn Probe>) {
    let mut generations = shared.generations();
    let mut checks = ActiveChecks::new(Arc::clone(shared), probe);
    loop {
        // Before `follow`, so that a generation published in between wakes this loop.
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

/// Checks the agents of the active generation.
async fn check_agents(shared: &Arc<Shared>) {
    let mut generations = shared.generations();
    let mut checks = AgentChecks::new(Arc::clone(shared), Arc::clone(shared.upstreams()));
    loop {
        // Before `follow`, so that a generation published in between wakes this loop.
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

/// Measures rates at each interval.
async fn sample(shared: &Shared) {
    let mut ticks = interval(SAMPLING);
    // Missed samples, after a pause of the machine, are not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        crate::status::sample(&shared.load_full()).await;
    }
}

/// Adds points to the charts of the admin page.
#[cfg(feature = "admin")]
async fn chart(shared: &Shared) {
    let mut ticks = interval(crate::observe::STEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        crate::status::chart(shared).await;
    }
}

#[cfg(not(feature = "admin"))]
async fn chart(_: &Shared) {}

/// Reloads the certificates for destinations when their files change.
#[cfg(feature = "tls")]
async fn renew(shared: &Shared) {
    let Some(tls) = shared.tls() else {
        return;
    };
    loop {
        sleep(RENEWAL).await;
        tls.refresh().await;
        shared.renew_credentials();
    }
}

#[cfg(not(feature = "tls"))]
async fn renew(_: &Shared) {}
