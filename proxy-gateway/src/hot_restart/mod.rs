//! Replacement of a running instance: a second one gets the listening sockets, so that no connection is ever
//! rejected, and the first drains once the second serves.
//!
//! They meet at a Unix socket, `Server.Handover`. A starting instance connects there first; if no instance
//! listens, it is the first. If the predecessor ends by itself while several successors wait, one of them takes its
//! place: the one that gets the lock on a file beside the socket.

mod inheritance;
mod offer;
mod predecessor;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use self::inheritance::Inheritance;
pub(crate) use self::offer::Offer;
pub(crate) use self::predecessor::Predecessor;

/// The error of passing sockets between instances.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HotRestartError {
    #[error("the running instance cannot be reached at {path}: {source}")]
    Ask { path: PathBuf, source: io::Error },
    #[error(
        "the instance that runs does not answer at {path} as it should: {source}; stop it, or start this one without `Server.Handover`"
    )]
    Answer { path: PathBuf, source: io::Error },
    #[error("another instance has taken over at {path} already; this one is not needed")]
    Outrun { path: PathBuf },
    #[error(
        "a successor cannot be waited for at {path}: {source}; its directory has to exist, and belong to whom the program runs as"
    )]
    Open { path: PathBuf, source: io::Error },
}

impl HotRestartError {
    fn ask(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Ask { path, source }
    }

    fn answer(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Answer { path, source }
    }

    fn open(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Open { path, source }
    }
}
