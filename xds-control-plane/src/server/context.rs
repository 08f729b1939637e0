use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use super::client_lines::ClientLines;
use super::metrics::Metrics;
use super::node_view::NodeView;
use super::nodes::Nodes;
use super::options::ServerOptions;
use super::wire::Blocks;

/// The state shared by streams and calls.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: ServerOptions,
    pub(crate) identifier: Arc<str>,
    /// The view to serve. `None` before the first snapshot.
    pub(crate) views: watch::Receiver<Option<Arc<NodeView>>>,
    /// The readiness of the view. Unset, it is ready as soon as it exists.
    pub(crate) readiness: OnceLock<watch::Receiver<bool>>,
    /// Becomes true, or is closed, when streams have to end.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) nodes: Nodes,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) blocks: Blocks,
    pub(crate) lines: Arc<ClientLines>,
}

impl Context {
    /// Returns true if there is a view that counts as ready.
    pub(crate) fn is_ready(&self) -> bool {
        let readiness = self.readiness.get();
        self.views.borrow().is_some() && readiness.is_none_or(|readiness| *readiness.borrow())
    }

    pub(crate) fn view(&self) -> Option<Arc<NodeView>> {
        self.views.borrow().clone()
    }
}
