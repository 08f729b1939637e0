use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::{HotRestartError, Inheritance, wire};

/// The target of log messages.
const TARGET: &str = "proxy::server";

/// The maximum number of successors that start at the same time. One is usual; of two, the quicker one wins.
const MAX_CANDIDATES: usize = 4;

/// The time limit for a candidate to receive the sockets. It may take as long as it needs to become ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// An offer of the sockets to successors, for as long as this instance serves.
///
/// It holds the sockets as well: while it exists, the kernel queues clients at them.
#[derive(Debug)]
pub(crate) struct Offer {
    listener: UnixListener,
    path: PathBuf,
    /// The temporary path of the socket until it is published.
    aside: Option<PathBuf>,
    sockets: Arc<Vec<std::net::TcpListener>>,
    /// The place of a predecessor that ended by itself, if this instance took it.
    inherited: Option<Inheritance>,
}

impl Offer {
    /// Prepares to wait for successors at `path`, where a predecessor may still be.
    pub(crate) fn open(
        path: &Path,
        sockets: Vec<std::net::TcpListener>,
    ) -> Result<Self, HotRestartError> {
        // The socket gets its final path in `publish`, so that no successor finds an instance that does not
        // serve yet.
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}", std::process::id()));
        let aside = PathBuf::from(aside);
        // In a container the next process may have the same id as one that was killed there.
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HotRestartError::open(path, error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&aside);
        Ok(Self {
            listener: listener.map_err(|error| HotRestartError::open(path, error))?,
            path: path.to_owned(),
            aside: Some(aside),
            sockets: Arc::new(sockets),
            inherited: None,
        })
    }

    /// Keeps the place of the predecessor until a successor takes over.
    pub(crate) fn keep(&mut self, inherited: Option<Inheritance>) {
        self.inherited = inherited;
    }

    /// Begins to wait for successors, in place of any earlier instance.
    pub(crate) fn publish(&mut self) -> Result<(), HotRestartError> {
        if let Some(aside) = self.aside.take() {
            // The rename replaces the socket of the predecessor in one step.
            fs::rename(aside, &self.path)
                .map_err(|error| HotRestartError::open(&self.path, error))?;
        }
        if let Some(inherited) = &self.inherited
            && let Err(error) = inherited.serves()
        {
            tracing::warn!(
                target: TARGET,
                %error,
                "instances that wait for this one continue to wait: they cannot be notified that \
                 its sockets are taken"
            );
        }
        Ok(())
    }

    /// Waits until a successor serves. Only draining is left to do then. A successor that gives up changes
    /// nothing.
    ///
    /// Cancel safe: candidates notice, and continue by themselves.
    pub(crate) async fn taken(&mut self) {
        let mut streams: Vec<Arc<UnixStream>> = Vec::new();
        let mut candidates = JoinSet::new();
        let successor = loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if !wire::is_one_of_us(&stream) => {
                        tracing::warn!(
                            target: TARGET,
                            process = process(&stream),
                            "a program of another user requested the listeners, and was rejected"
                        );
                    }
                    Ok((stream, _)) if streams.len() < MAX_CANDIDATES => {
                        let stream = Arc::new(stream);
                        streams.push(Arc::clone(&stream));
                        candidates.spawn(prepare(stream, Arc::clone(&self.sockets)));
                    }
                    Ok((stream, _)) => {
                        let starting: Vec<_> = streams.iter().filter_map(|one| process(one)).collect();
                        tracing::warn!(
                            target: TARGET,
                            process = process(&stream),
                            ?starting,
                            "a successor was turned away; end those that are starting if they hang"
                        );
                    }
                    Err(error) => {
                        tracing::warn!(target: TARGET, %error, "no successor can connect");
                        // The system may be out of file handles, and a loop without a pause would be busy.
                        tokio::time::sleep(PATIENCE).await;
                    }
                },
                Some(prepared) = candidates.join_next() => match prepared {
                    Ok((stream, Ok(()))) => break stream,
                    Ok((stream, Err(error))) => {
                        streams.retain(|one| !Arc::ptr_eq(one, &stream));
                        tracing::warn!(target: TARGET, %error, "a successor gave up; this instance keeps serving");
                    }
                    Err(error) => tracing::error!(target: TARGET, %error, "a successor was lost"),
                },
            }
        };
        // An instance that waits for the successor may have to take its place.
        drop(self.inherited.take());
        let others = streams.iter().filter(|one| !Arc::ptr_eq(one, &successor));
        settle(&successor, others.map(|one| &**one)).await;
    }
}

/// Tells the candidates which of them serves from now on. The others end first: one that hears nothing would take the
/// place as well.
pub(super) async fn settle(successor: &UnixStream, others: impl Iterator<Item = &UnixStream>) {
    for stream in others {
        // A candidate that has ended meanwhile need not know.
        let _ = wire::say(stream, wire::TAKEN).await;
    }
    let _ = wire::say(successor, wire::YOURS).await;
}

/// Returns the id of the process at the other end.
fn process(stream: &UnixStream) -> Option<i32> {
    stream.peer_cred().ok()?.pid()
}

/// Passes the sockets on, and waits until the successor serves.
async fn prepare(
    stream: Arc<UnixStream>,
    sockets: Arc<Vec<std::net::TcpListener>>,
) -> (Arc<UnixStream>, io::Result<()>) {
    let given = tokio::time::timeout(PATIENCE, async {
        wire::say(&stream, wire::HELLO).await?;
        for socket in sockets.iter() {
            wire::give(&stream, socket).await?;
        }
        wire::say(&stream, wire::END).await
    });
    let outcome = async {
        given
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        // A successor may take long to start, so this has no time limit.
        match wire::hear(&stream).await? {
            (wire::SERVING, _) => Ok(()),
            (other, _) => Err(wire::unexpected(other)),
        }
    };
    let outcome = outcome.await;
    (stream, outcome)
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            // A file that cannot be removed is harmless, since nothing looks for it.
            let _ = fs::remove_file(aside);
        }
    }
}
