use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The place of an instance that ended without naming a successor. One process has it at a time, until it ends.
#[derive(Debug)]
pub(crate) struct Inheritance {
    /// Locked.
    _file: File,
}

impl Inheritance {
    /// Takes the place at which instances meet at `path`. `None`: another process has it.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        // The file stays: who deletes it while another one opens it makes two of them.
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        // A lock needs no right to write: who can open the file can keep all successors from serving.
        let file = options.mode(0o600).open(beside(path))?;
        if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
            let message = "the lock file belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// `handover.sock.lock`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
