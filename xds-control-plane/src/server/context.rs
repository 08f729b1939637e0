use std::sync::Arc;

use tokio::sync::watch;

use super::metrics::Metrics;
use super::nodes::Nodes;
use super::options::ServerOptions;
use super::view::View;

/// What streams and calls share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: ServerOptions,
    pub(crate) identifier: Arc<str>,
    /// What is served; nothing before the first snapshot.
    pub(crate) views: watch::Receiver<Option<Arc<View>>>,
    /// Becomes true, or is closed, when streams have to end.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) nodes: Nodes,
    pub(crate) metrics: Arc<Metrics>,
}

impl Context {
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.views.borrow().clone()
    }
}
