//! The last known good configuration on disk, so that a restart while the source is unavailable still
//! serves.

mod format;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

pub(crate) use self::format::{FormatError, decode, encode};
use crate::contain::require_regular;
use crate::replace::{Replacement, beside, check_directory};
use crate::runner::KeptState;

/// The wait after a failed write, since a full disk is seldom freed at once.
const RETRY: Duration = Duration::from_secs(60);

/// The longest time by which the file's confirmation time may lag behind the actual one.
const MAX_LAG: Duration = Duration::from_secs(300);

/// The minimum delay of a write. Writing more often would cost more than the fresher ages are worth.
const MIN_LAG: Duration = Duration::from_secs(10);

/// The largest file that is read back.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// One file, and its predecessor.
///
/// It is [replaced](Replacement) as a whole, so that a crash at any point leaves either the old or the new
/// content. The content has a checksum: a torn or changed file is rejected, and its predecessor is read
/// instead.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// The time after which the file is written again although nothing has changed.
    lag: Duration,
    /// True if the file is older than the configuration that serves.
    behind: bool,
    /// The time of the last write.
    saved_at: Option<Instant>,
    /// The time before which writing is not retried.
    retry_at: Option<Instant>,
}

impl Store {
    /// Creates the store of destinations. Unreadable ones serve for `unread_grace`. After a restart, their age is
    /// that in the file, so the file may lag only by a small part of that time.
    pub(crate) fn new(path: PathBuf, unread_grace: Duration) -> Self {
        let lag = match unread_grace {
            Duration::ZERO => MAX_LAG,
            grace => (grace / 6).clamp(MIN_LAG, MAX_LAG),
        };
        Self {
            path,
            lag,
            behind: false,
            saved_at: None,
            retry_at: None,
        }
    }

    /// Returns true if the configuration should be written now, after a poll that changed it or only
    /// confirmed it.
    pub(crate) fn is_due(&mut self, changed: bool, now: Instant) -> bool {
        let fresh = |at| now.duration_since(at) < self.lag;
        self.behind |= changed || !self.saved_at.is_some_and(fresh);
        self.behind && self.retry_at.is_none_or(|at| now >= at)
    }

    /// Records the result of a write.
    pub(crate) fn saved(&mut self, ok: bool, now: Instant) {
        self.behind = !ok;
        if ok {
            self.saved_at = Some(now);
        }
        self.retry_at = (!ok).then(|| now + RETRY);
    }

    /// Writes what is kept of `source`. Blocks.
    pub(crate) fn save(&self, source: &str, kept: &KeptState) -> Result<(), PersistError> {
        let bytes = encode(source, kept, SystemTime::now());
        let result = Replacement::write(&self.path, &[&bytes]).and_then(|written| {
            // Only a file that could be read back is worth keeping as the predecessor.
            if matches!(read_bounded(&self.path), Ok(Some(old)) if decode(source, &old, SystemTime::now()).is_ok())
            {
                fs::rename(&self.path, beside(&self.path, ".previous"))?;
            }
            written.commit()
        });
        result.map_err(|source| PersistError::Io {
            path: self.path.clone(),
            source,
        })
    }

    /// Reads what was kept of `source`. Returns `None` if there is no file. Blocks.
    pub(crate) fn load(&self, source: &str) -> Result<Option<KeptState>, PersistError> {
        let current = load_file(&self.path, source);
        if let Ok(Some(_)) = &current {
            return current;
        }
        match (load_file(&beside(&self.path, ".previous"), source), current) {
            (Ok(Some(previous)), current) => {
                if let Err(error) = current {
                    tracing::warn!(
                        target: "discovery::runner",
                        error = %error,
                        "the file that was kept last cannot be used; its predecessor can",
                    );
                }
                Ok(Some(previous))
            }
            (_, current) => current,
        }
    }
}

/// The reason why the last known good configuration could not be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PersistError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: FormatError },
}

fn load_file(path: &Path, source: &str) -> Result<Option<KeptState>, PersistError> {
    let bytes = read_bounded(path).map_err(|source| PersistError::Io {
        path: path.to_owned(),
        source,
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    match decode(source, &bytes, SystemTime::now()) {
        Ok(kept) => Ok(Some(kept)),
        Err(source) => Err(PersistError::Format {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Returns the file's content. `None` if there is no file.
fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if metadata.is_symlink() => {
            let message = "it is a symbolic link; name the file itself";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        _ => require_regular(path)?,
    }
    // Anyone who can put a file here decides where requests go.
    check_directory(path)?;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("more than {MAX_FILE_BYTES} bytes"),
        ));
    }
    Ok(Some(bytes))
}
