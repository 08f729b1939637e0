use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;

use crate::cluster::{OpenedReplica, ReplicaRef};

/// A future that can be kept.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The code that runs in replicas: real programs in place of synthetic addresses.
///
/// The emulator opens a workload when a replica was placed and its process runs, publishes what it listens on, and closes
/// it when the replica goes, is moved or crashes. Calls for different replicas run at the same time; a replica is never
/// opened a second time before its `close` has returned.
pub trait Workload: Send + Sync + 'static {
    /// Starts what a replica does, and tells where it is reached.
    ///
    /// The future is dropped when the replica goes before it is done, and `close` is called all the same.
    ///
    /// # Errors
    ///
    /// Any: the replica is given up then, the event is in the health of its partition, and another replica with a new id is
    /// placed, on another node first. Where all nodes have refused, they are asked again after the topology's
    /// `rap_message_retry_interval`. No process crashes, so back-off and blocklisting of hosting do not begin.
    fn open(&self, replica: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>>;

    /// Ends what [`open`](Self::open) began. Also called for a replica whose `open` failed or was cut.
    ///
    /// The future is dropped when the emulator shuts down and all workloads together take longer than ten seconds.
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
    /// One listener with its URL.
    pub fn one(listener: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Listeners(BTreeMap::from([(listener.into(), url.into())]))
    }

    /// The text that the naming service has: `{"Endpoints":{"http":"http://127.0.0.1:8080"}}`.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Listeners(listeners) => serde_json::json!({ "Endpoints": listeners }).to_string(),
            Self::Raw(text) => text.clone(),
        }
    }
}
