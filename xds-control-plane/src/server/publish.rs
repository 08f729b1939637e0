use std::convert::Infallible;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::metrics::Metrics;
use super::node_view::{Feed, NodeView};
use crate::snapshot::Snapshot;

/// Turns snapshots into views, as they come and as time goes by.
#[derive(Debug)]
pub(crate) struct Publisher {
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    feed: Feed,
    views: watch::Sender<Option<Arc<NodeView>>>,
    metrics: Arc<Metrics>,
}

impl Publisher {
    /// A publisher of what `snapshots` holds, and where it publishes.
    pub(crate) fn new(
        snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
        feed: Feed,
        metrics: Arc<Metrics>,
    ) -> (Self, watch::Receiver<Option<Arc<NodeView>>>) {
        let (views, receiver) = watch::channel(None);
        let publisher = Self {
            snapshots,
            feed,
            views,
            metrics,
        };
        (publisher, receiver)
    }

    pub(crate) async fn run(mut self) -> Infallible {
        self.snapshots.mark_changed();
        loop {
            let deadline = self.feed.deadline();
            let expiry = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let changed = async {
                if self.snapshots.changed().await.is_err() {
                    // The publisher was dropped; the last view stays.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = changed => {
                    let snapshot = self.snapshots.borrow_and_update().clone();
                    if let Some(snapshot) = snapshot {
                        self.metrics.published(&snapshot);
                        let view = self.feed.publish(snapshot, Instant::now());
                        self.views.send_replace(Some(view));
                    }
                }
                () = expiry => {
                    if let Some(view) = self.feed.expire(Instant::now()) {
                        self.views.send_replace(Some(view));
                    }
                }
            }
        }
    }
}
