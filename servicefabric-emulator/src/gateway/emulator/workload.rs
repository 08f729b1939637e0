use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;

use crate::cluster::{OpenedReplica, ReplicaRef};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The code that runs in replicas: real programs in place of synthetic addresses.
///
/// The emulator opens a workload when a replica was placed and its process runs, publishes its addresses, and
/// closes it when the replica is removed, moves or crashes. Calls for different replicas run concurrently. A
/// replica is never reopened before its `close` has returned.
pub trait Workload: Send + Sync + 'static {
    /// Starts the workload of a replica, and returns its addresses.
    ///
    /// The future is dropped if the replica is removed before it completes. `close` is called even then.
    ///
    /// # Errors
    ///
    /// Any error: the replica is dropped, the event is in the health of its partition, and a replica with a
    /// new id is placed, preferably on another node. If all nodes have rejected it, they are tried again
    /// after the topology's `rap_message_retry_interval`. No process crashes, so hosting's back-off and
    /// blocklisting do not begin.
    fn open(&self, replica: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>>;

    /// Ends the workload that [`open`](Self::open) started. Also called for a replica whose `open` failed or
    /// was cancelled.
    ///
    /// The future is dropped if the emulator shuts down and all workloads together take longer than ten
    /// seconds.
    fn close<'a>(&'a self, replica: &'a ReplicaRef) -> BoxFuture<'a, ()>;
}

/// The addresses of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoints {
    /// A URL for each listener.
    Listeners(BTreeMap<String, String>),
    /// Any text, published as it is.
    Raw(String),
}

impl Endpoints {
    /// Creates endpoints with one listener.
    pub fn one(listener: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Listeners(BTreeMap::from([(listener.into(), url.into())]))
    }

    /// Returns the text for the naming service: `{"Endpoints":{"http":"http://127.0.0.1:8080"}}`.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Listeners(listeners) => serde_json::json!({ "Endpoints": listeners }).to_string(),
            Self::Raw(text) => text.clone(),
        }
    }
}
