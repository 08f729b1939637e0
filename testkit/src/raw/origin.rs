use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::{RawConnection, Recording};
use crate::listen::{V4, V6, listen};
use crate::tasks::Tasks;
use crate::traffic::Traffic;

/// A TCP server that runs a script for each connection. Dropping it stops it and all scripts, and
/// panics if a script has panicked.
#[must_use = "an origin stops when it is dropped"]
pub struct RawOrigin {
    addr: SocketAddr,
    traffic: Traffic,
    recordings: Recordings,
    tasks: Tasks,
}

type Recordings = Arc<Mutex<Vec<Recording>>>;

impl RawOrigin {
    /// Runs `script` for each connection to a port of `127.0.0.1`.
    ///
    /// The connection closes when the script returns. An error ends only that connection, and is
    /// available from [`Recording::outcome`]; a disconnect is normal for a faulty server.
    /// [`RawConnection::index`] distinguishes connections.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime; when no port can be bound.
    #[track_caller]
    pub fn script<S, F>(script: S) -> Self
    where
        S: Fn(RawConnection) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::script_on(V4, script)
    }

    /// Like [`script`](Self::script), on a port of `[::1]`.
    #[track_caller]
    pub fn script_ipv6<S, F>(script: S) -> Self
    where
        S: Fn(RawConnection) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::script_on(V6, script)
    }

    /// Like [`script`](Self::script), on this address, such as that of a stopped origin.
    #[track_caller]
    pub fn script_on<S, F>(address: SocketAddr, script: S) -> Self
    where
        S: Fn(RawConnection) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (listener, addr) = listen(address);
        let traffic = Traffic::new();
        let recordings = Recordings::default();
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        let accept = Accept {
            traffic: traffic.clone(),
            recordings: Arc::clone(&recordings),
            script: Arc::new(script),
        };
        tasks.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => spawner.spawn(accept.connection(stream)),
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
                }
            }
        });
        Self {
            addr,
            traffic,
            recordings,
            tasks,
        }
    }

    /// Responds to every request on a connection with these bytes, and waits for the next one.
    ///
    /// Reads the body of each request by its framing first. To close after one response, see
    /// [`answering_once`](Self::answering_once).
    #[track_caller]
    pub fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = bytes.into().into();
        Self::script(move |mut connection| {
            let answer = Arc::clone(&answer);
            async move {
                loop {
                    connection.read_whole_request().await?;
                    connection.write_all(&answer).await?;
                }
            }
        })
    }

    /// Responds to the first request on each connection with these bytes, and closes.
    #[track_caller]
    pub fn answering_once(bytes: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = bytes.into().into();
        Self::script(move |mut connection| {
            let answer = Arc::clone(&answer);
            async move {
                connection.read_whole_request().await?;
                connection.write_all(&answer).await
            }
        })
    }

    /// The address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The counts so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The data read on the connection with this index, from 0.
    ///
    /// # Panics
    ///
    /// Panics if there is no such connection yet: wait for it with
    /// [`Traffic::wait_for_connections`].
    #[track_caller]
    pub fn recording(&self, index: usize) -> Recording {
        let recordings = self.recordings.lock();
        let accepted = recordings.len();
        recordings
            .get(index)
            .unwrap_or_else(|| panic!("no connection {index}: {accepted} accepted so far"))
            .clone()
    }

    /// The data read on all connections so far, in the order of acceptance.
    pub fn recordings(&self) -> Vec<Recording> {
        self.recordings.lock().clone()
    }

    /// Stops at once and waits until the port and all connections are closed.
    ///
    /// Cancel safety: the origin stops even if this is dropped.
    pub async fn stop(self) {
        self.tasks.stop().await;
    }
}

impl std::fmt::Debug for RawOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawOrigin")
            .field("addr", &self.addr)
            .field("counts", &self.traffic.counts())
            .finish_non_exhaustive()
    }
}

struct Accept<S> {
    traffic: Traffic,
    recordings: Recordings,
    script: Arc<S>,
}

impl<S> Accept<S> {
    fn connection<F>(&self, stream: TcpStream) -> impl Future<Output = ()> + use<S, F>
    where
        S: Fn(RawConnection) -> F,
        F: Future<Output = io::Result<()>>,
    {
        let recording = Recording::new();
        // The recording exists before the count, so that a test that waits for the count finds it.
        self.recordings.lock().push(recording.clone());
        let open = self.traffic.connection();
        let script = Arc::clone(&self.script);
        let traffic = self.traffic.clone();
        async move {
            let outcome = match RawConnection::new(stream, open.id, traffic, recording.clone()) {
                Ok(connection) => script(connection).await,
                Err(error) => Err(error),
            };
            recording.ended(outcome.map_err(|error| error.to_string()));
            drop(open);
        }
    }
}
