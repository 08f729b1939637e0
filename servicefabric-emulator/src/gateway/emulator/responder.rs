use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::workload::{BoxFuture, Endpoints, Workload};
use crate::cluster::{OpenedReplica, PartitionInformation, ReplicaRef};
use crate::gateway::server::{Answers, ClosedByFault, Peer, Reply, Server};

/// A workload that runs an HTTP server on this machine for every listener of every replica. It responds with
/// the identity of the replica.
///
/// It listens on `127.0.0.1`, on a port that the system assigns, and always without TLS: a listener that its
/// manifest calls `https` has an `http` address here.
///
/// ```json
/// {"Service":"fabric:/Shop/Web","Partition":"…","Replica":"133…","Node":"_Node_1","Listener":"http",
///  "Version":"1.0.0","Method":"GET","Path":"/anything"}
/// ```
#[derive(Debug, Default)]
pub struct Responder {
    open: Mutex<BTreeMap<ReplicaRef, Vec<Listening>>>,
    room: Option<Arc<Semaphore>>,
}

/// A server, and its permit below the limit.
#[derive(Debug)]
struct Listening {
    server: Server,
    _place: Option<OwnedSemaphorePermit>,
}

impl Responder {
    /// Creates a responder without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the number of listeners. Replicas beyond it do not open. Default: only the limit of the system.
    #[must_use]
    pub fn at_most(mut self, listeners: usize) -> Self {
        let listeners = listeners.min(Semaphore::MAX_PERMITS);
        self.room = Some(Arc::new(Semaphore::new(listeners)));
        self
    }

    fn place(&self) -> io::Result<Option<OwnedSemaphorePermit>> {
        let Some(room) = &self.room else {
            return Ok(None);
        };
        let place = Arc::clone(room).try_acquire_owned();
        place.map(Some).map_err(|_| {
            io::Error::other(
                "there are as many listeners as the limit of file descriptors allows: a higher `ulimit -n` at the start allows more",
            )
        })
    }

    /// Locks the listeners. Every change is atomic, so a panic of another thread leaves them consistent.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ReplicaRef, Vec<Listening>>> {
        self.open.lock()
    }

    async fn listen(&self, replica: OpenedReplica) -> io::Result<Endpoints> {
        let key = replica.replica;
        let mut servers = Vec::new();
        let mut addresses = BTreeMap::new();
        for listener in &replica.listeners {
            let place = self.place()?;
            let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let answers = Arc::new(Who::new(&replica, &listener.name));
            let server = Server::start(socket, None, answers)?;
            let url = format!("http://{}{}", server.address(), listener.path);
            addresses.insert(listener.name.clone(), url);
            servers.push(Listening {
                server,
                _place: place,
            });
        }
        self.lock().insert(key, servers);
        Ok(Endpoints::Listeners(addresses))
    }
}

impl Workload for Responder {
    fn open(&self, replica: OpenedReplica) -> BoxFuture<'_, io::Result<Endpoints>> {
        Box::pin(self.listen(replica))
    }

    fn close<'a>(&'a self, replica: &'a ReplicaRef) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // The lock is released before the servers end.
            let servers = self.lock().remove(replica).unwrap_or_default();
            for listening in servers {
                listening.server.shutdown().await;
            }
        })
    }
}

/// One listener of one replica.
#[derive(Debug)]
struct Who {
    service: String,
    partition: String,
    keys: Option<String>,
    replica: String,
    node: String,
    listener: String,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct EchoBody<'a> {
    service: &'a str,
    partition: &'a str,
    /// The name of the partition, or its first and last key.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<&'a str>,
    replica: &'a str,
    node: &'a str,
    listener: &'a str,
    version: &'a str,
    method: &'a str,
    path: &'a str,
}

impl Who {
    fn new(replica: &OpenedReplica, listener: &str) -> Self {
        Self {
            service: replica.service.to_string(),
            partition: replica.replica.partition.to_string(),
            keys: match &replica.partition {
                PartitionInformation::Singleton => None,
                PartitionInformation::Named(name) => Some(name.clone()),
                PartitionInformation::Int64Range { low, high } => Some(format!("{low} to {high}")),
            },
            replica: replica.replica.replica.to_string(),
            node: replica.node.to_string(),
            listener: listener.to_owned(),
            version: replica.code_version.clone(),
        }
    }
}

impl Answers for Who {
    async fn serve(
        &self,
        request: Request<Incoming>,
        _: Peer,
    ) -> Result<Response<Reply>, ClosedByFault> {
        let said = EchoBody {
            service: &self.service,
            partition: &self.partition,
            keys: self.keys.as_deref(),
            replica: &self.replica,
            node: &self.node,
            listener: &self.listener,
            version: &self.version,
            method: request.method().as_str(),
            path: request.uri().path(),
        };
        let mut body = serde_json::to_vec(&said).expect("texts are always JSON");
        body.push(b'\n');
        let mut response = Response::new(Reply::whole(body.into()));
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        );
        Ok(response)
    }
}
