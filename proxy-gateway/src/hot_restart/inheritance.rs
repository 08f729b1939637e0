use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

/// The place of an instance that ended without naming a successor. One process has it at a time, until it ends.
#[derive(Debug)]
pub(crate) struct Inheritance {
    /// Locked.
    file: File,
}

/// The text in the lock file, which differs for each instance that has served in an inherited place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(Vec<u8>);

impl Mark {
    /// Reads the mark of the place at which instances meet at `path`. Empty if there is none.
    pub(super) fn read(path: &Path) -> Self {
        // Far more than is ever written.
        const MAX: u64 = 256;
        let mut text = Vec::new();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(NO_LINK).open(beside(path));
        // What cannot be read is no news.
        let _ = file.and_then(|file| file.take(MAX).read_to_end(&mut text));
        Self(text)
    }
}

impl Inheritance {
    /// Takes the place at which instances meet at `path`. `None`: another process has it.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        // The file stays: who deletes it while another one opens it makes two of them.
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        // A lock needs no right to write: who can open the file can keep all successors from serving.
        let options = options.mode(0o600).custom_flags(NO_LINK);
        let file = options.open(beside(path))?;
        if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
            let message = "the lock file belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Tells those who wait for the place that this instance serves in it.
    pub(super) fn serves(&self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        // Of a fixed length: a shorter text would keep the end of a longer one.
        let mark = format!("{:010} {now:040}\n", std::process::id());
        self.file.write_all_at(mark.as_bytes(), 0)?;
        (&self.file).flush()
    }
}

/// A link at the name of the lock file could lead to any file, and this one is written to.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// `handover.sock.lock`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
