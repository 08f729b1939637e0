use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::net::UnixStream;

use super::inheritance::{Inheritance, Mark};
use super::{HotRestartError, wire};

/// The target of log messages.
const TARGET: &str = "proxy::server";

/// The time limit for a response of the predecessor. It responds from its main loop, which is never busy for
/// long.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time for which the place of a predecessor that hangs is tried to be taken.
const HANGING: Duration = Duration::from_secs(2);

/// The pause between attempts to take a place.
const PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of sockets to receive, beyond any realistic number of listeners and workers.
const MAX_SOCKETS: usize = 65_536;

/// The instance to replace. If this is dropped before [`replace`](Self::replace), that instance continues as
/// before.
#[derive(Debug)]
pub(crate) struct Predecessor {
    path: PathBuf,
    stream: UnixStream,
    /// The mark of the last instance that served in an inherited place, from before the predecessor was found.
    mark: Mark,
    /// The place of the predecessor, if it has ended and this instance has taken it.
    inherited: OnceLock<Inheritance>,
}

impl Predecessor {
    /// Connects to the running instance, if there is one, and receives its sockets.
    pub(crate) async fn find(
        path: &Path,
    ) -> Result<Option<(Self, Vec<TcpListener>)>, HotRestartError> {
        // Any other mark is that of an instance that serves in the place of this predecessor.
        let mark = Mark::read(path);
        let stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            // No instance, or one that has ended and left the file behind.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(HotRestartError::ask(path, error)),
        };
        if !wire::is_one_of_us(&stream) {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(HotRestartError::answer(path, error));
        }
        let sockets = within(sockets(&stream)).await;
        let sockets = sockets.map_err(|error| HotRestartError::answer(path, error))?;
        tracing::info!(
            target: TARGET,
            sockets = sockets.len(),
            "taking over from the instance that runs"
        );
        let path = path.to_owned();
        let predecessor = Self {
            path,
            stream,
            mark,
            inherited: OnceLock::new(),
        };
        Ok(Some((predecessor, sockets)))
    }

    /// Waits for the end of the predecessor, and takes its place.
    ///
    /// # Errors
    ///
    /// Another instance has replaced it, and serves.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn gone(&self) -> Result<(), HotRestartError> {
        match wire::hear(&self.stream).await {
            Err(_) => self.inherit().await,
            Ok((wire::TAKEN, _)) => Err(self.outrun()),
            Ok((other, _)) => Err(HotRestartError::answer(&self.path, wire::unexpected(other))),
        }
    }

    /// Takes the place of a predecessor that ended by itself. Only one of the waiting instances can. The others wait
    /// until that one serves: it may end before.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    async fn inherit(&self) -> Result<(), HotRestartError> {
        if self.inherited.get().is_some() {
            return Ok(());
        }
        loop {
            match Inheritance::take(&self.path) {
                Ok(Some(taken)) => {
                    let _ = self.inherited.set(taken);
                    break;
                }
                Ok(None) if Mark::read(&self.path) != self.mark => return Err(self.outrun()),
                // The predecessor may have had the place itself, and the system may still be closing its files.
                Ok(None) => tokio::time::sleep(PAUSE).await,
                // Two instances that serve are better than none.
                Err(error) => {
                    tracing::warn!(
                        target: TARGET,
                        %error,
                        "it is unknown whether another instance takes over, too"
                    );
                    break;
                }
            }
        }
        Ok(())
    }

    fn outrun(&self) -> HotRestartError {
        let path = self.path.clone();
        HotRestartError::Outrun { path }
    }

    /// Reports that this instance serves, and returns when the other one has stopped accepting connections. If that one
    /// has ended, the result has to be kept until this instance has a successor.
    ///
    /// # Errors
    ///
    /// Another instance has taken its place.
    pub(crate) async fn replace(self) -> Result<Option<Inheritance>, HotRestartError> {
        let asked = within(async {
            // After the other end has closed, its last message can still be received.
            let said = wire::say(&self.stream, wire::SERVING).await;
            let heard = wire::hear(&self.stream).await;
            heard.or_else(|error| said.and(Err(error)))
        });
        match asked.await {
            Ok((wire::YOURS, _)) => Ok(None),
            Ok((wire::TAKEN, _)) => Err(self.outrun()),
            Ok((other, _)) => Err(HotRestartError::answer(&self.path, wire::unexpected(other))),
            Err(error) => {
                // The predecessor has ended meanwhile, as intended. Its sockets live on here.
                tracing::warn!(
                    target: TARGET,
                    %error,
                    "the previous instance did not announce its stop"
                );
                match error.kind() {
                    // A predecessor that hangs may have the place itself. It ends when it reads that this one serves.
                    io::ErrorKind::TimedOut => {
                        let taken = tokio::time::timeout(HANGING, self.inherit()).await;
                        taken.unwrap_or(Ok(()))?;
                    }
                    _ => self.inherit().await?,
                }
                Ok(self.inherited.into_inner())
            }
        }
    }
}

async fn sockets(stream: &UnixStream) -> io::Result<Vec<TcpListener>> {
    match wire::hear(stream).await? {
        (wire::HELLO, _) => {}
        (other, _) => return Err(wire::unexpected(other)),
    }
    let mut sockets = Vec::new();
    while sockets.len() < MAX_SOCKETS {
        match wire::hear(stream).await? {
            (wire::SOCKET, Some(socket)) => sockets.push(TcpListener::from(socket)),
            (wire::END, _) => return Ok(sockets),
            (other, _) => return Err(wire::unexpected(other)),
        }
    }
    Err(io::Error::other("it has too many sockets"))
}

async fn within<T>(answer: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
