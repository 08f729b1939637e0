//! The last good configuration on disk, so that a restart while the source is away still serves.

mod format;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

pub(crate) use self::format::{FormatError, decode, encode};
use crate::contain::require_regular;
use crate::runner::KeptService;

/// How long to wait after the disk refused, since a full disk stays full for a while.
const RETRY: Duration = Duration::from_secs(60);

/// How long the file may say that the configuration was last confirmed before it was.
const REFRESH: Duration = Duration::from_secs(3600);

/// The largest file that is read back.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// One file, and the one that it replaced.
///
/// Writing goes to a file beside it, is synced and then renamed, so that a crash at any point leaves either the old or
/// the new content. The content has a checksum: a file that was torn or changed all the same is refused, and its
/// predecessor is read instead.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// Whether what is on disk is older than what serves.
    behind: bool,
    /// When it was last written.
    saved_at: Option<Instant>,
    /// Not to be tried again before.
    retry_at: Option<Instant>,
}

impl Store {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            behind: false,
            saved_at: None,
            retry_at: None,
        }
    }

    /// Whether it is time to write, after an answer that changed something or only confirmed it.
    pub(crate) fn is_due(&mut self, changed: bool, now: Instant) -> bool {
        let fresh = |at| now.duration_since(at) < REFRESH;
        self.behind |= changed || !self.saved_at.is_some_and(fresh);
        self.behind && self.retry_at.is_none_or(|at| now >= at)
    }

    /// Notes how writing went.
    pub(crate) fn saved(&mut self, ok: bool, now: Instant) {
        self.behind = !ok;
        if ok {
            self.saved_at = Some(now);
        }
        self.retry_at = (!ok).then(|| now + RETRY);
    }

    /// Writes the services of `source`. Blocks.
    pub(crate) fn save(&self, source: &str, services: &[KeptService]) -> Result<(), PersistError> {
        let bytes = encode(source, services, SystemTime::now());
        // Two processes may write while one takes the place of the other.
        let temporary = self.beside(&format!(".{}.new", std::process::id()));
        let result = write_synced(&temporary, &bytes).and_then(|()| {
            // Only a file that could be read back is worth keeping as the predecessor.
            if matches!(read_bounded(&self.path), Ok(Some(old)) if decode(source, &old, SystemTime::now()).is_ok())
            {
                fs::rename(&self.path, self.beside(".previous"))?;
            }
            fs::rename(&temporary, &self.path)?;
            sync_directory(&self.path)
        });
        result.map_err(|source| {
            // The disk may be full: what was written of the new file is in the way of the next attempt.
            let _ = fs::remove_file(&temporary);
            PersistError::Io {
                path: self.path.clone(),
                source,
            }
        })
    }

    /// Reads what was kept for `source`. `None`: there is no file. Blocks.
    pub(crate) fn load(&self, source: &str) -> Result<Option<Vec<KeptService>>, PersistError> {
        let current = load_file(&self.path, source);
        if let Ok(Some(_)) = &current {
            return current;
        }
        match (load_file(&self.beside(".previous"), source), current) {
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

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(suffix);
        self.path.with_file_name(name)
    }
}

/// Why the last good configuration could not be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PersistError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: FormatError },
}

fn load_file(path: &Path, source: &str) -> Result<Option<Vec<KeptService>>, PersistError> {
    let bytes = read_bounded(path).map_err(|source| PersistError::Io {
        path: path.to_owned(),
        source,
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    match decode(source, &bytes, SystemTime::now()) {
        Ok(services) => Ok(Some(services)),
        Err(source) => Err(PersistError::Format {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The file's content; `None`: there is no file.
fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match require_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    }
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

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match require_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => other?,
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Configuration may hold what not every account should see.
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes renames in the file's directory last through a power cut, where directories can be synced.
fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        let directory = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        File::open(directory)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
