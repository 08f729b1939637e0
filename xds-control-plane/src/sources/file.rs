//! A file that is read again when it changes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

/// The interval at which the file is checked for changes. A check costs a microsecond, and works on any
/// file system.
const LOOK: Duration = Duration::from_millis(250);

/// Maximum number of rereads of a file that is being written.
const MOST_LOOKS: usize = 40;

/// The largest file that is read.
const MOST_BYTES: u64 = 16 << 20;

/// A file that is read again when it changes.
#[derive(Debug)]
pub(super) struct FollowedFile {
    path: PathBuf,
    /// The last returned result.
    seen: Option<Result<String, String>>,
    stamp: Option<Stamp>,
    /// The last result, if it was read only once.
    unconfirmed: Option<Result<String, String>>,
}

/// The properties that usually change with the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl FollowedFile {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            seen: None,
            stamp: None,
            unconfirmed: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the content differs from the last result, and returns it: the content, or the reason why
    /// it cannot be read. The first result comes at once, unless the file was just written.
    ///
    /// Content counts when it was read twice with some time between, or has not changed for a while:
    /// editors and `cp` empty a file before they write it. A file that is still empty then has no content
    /// either; `{}` does.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time without losing a change.
    pub(super) async fn next(&mut self) -> Result<String, String> {
        loop {
            let path = self.path.clone();
            let (stamp, seen_stamp) = (stamp(&path).await, self.stamp.clone());
            // A file that was written within the last second may be written again within the same tick of its clock.
            let is_settled = stamp.as_ref().is_some_and(Stamp::is_settled);
            if self.seen.is_none() || stamp.is_none() || stamp != seen_stamp || !is_settled {
                let content = read(path).await;
                let is_confirmed = is_settled || content.is_err();
                if self.seen.as_ref() == Some(&content) {
                    self.unconfirmed = None;
                    self.stamp = stamp;
                } else if is_confirmed || self.unconfirmed.as_ref() == Some(&content) {
                    self.unconfirmed = None;
                    self.stamp = stamp;
                    self.seen = Some(content.clone());
                    return content;
                } else {
                    self.unconfirmed = Some(content);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Reads the content again, or returns the reason why it cannot be read. Two reads have to be equal,
    /// since the file may be in the middle of a write.
    pub(super) async fn again(&mut self) -> Result<String, String> {
        let mut content = read(self.path.clone()).await;
        for _ in 0..MOST_LOOKS {
            sleep(LOOK).await;
            let newer = read(self.path.clone()).await;
            if newer == content {
                self.seen = Some(content.clone());
                return content;
            }
            content = newer;
        }
        Err(format!(
            "{}: it is written all the time",
            self.path.display()
        ))
    }
}

impl Stamp {
    fn is_settled(&self) -> bool {
        let age = self.modified.and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age > Duration::from_secs(2))
    }
}

async fn stamp(path: &Path) -> Option<Stamp> {
    let path = path.to_owned();
    let metadata = tokio::task::spawn_blocking(move || std::fs::metadata(path).ok()).await;
    let metadata = metadata.ok().flatten()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        inode,
    })
}

async fn read(path: PathBuf) -> Result<String, String> {
    let shown = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || read_text(&path)).await;
    let read = read.unwrap_or_else(|_| Err(io::Error::other("the runtime is shutting down")));
    match read {
        Ok(text) if text.trim().is_empty() => Err(format!(
            "{shown}: it is empty, as a file is that is being written; if nothing is meant write `{{}}`"
        )),
        Ok(text) => Ok(text),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// The content of a file that is one, and not too large.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a file",
        ));
    }
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        let message = format!("it has more than {MOST_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_file_is_told_when_it_changes_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = FollowedFile::new(&path);
        assert!(file.next().await.unwrap_err().contains("file"));
        std::fs::write(&path, "one").unwrap();
        assert_eq!(file.next().await.as_deref(), Ok("one"));
        std::fs::write(&path, "two").unwrap();
        assert_eq!(file.next().await.as_deref(), Ok("two"));
        std::fs::write(&path, "two").unwrap();
        assert!(
            timeout(LOOK * 3, file.next()).await.is_err(),
            "it is the same"
        );
        let other = folder.path().join("other");
        std::fs::write(&other, "six").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(file.next().await.as_deref(), Ok("six"));
    }

    /// A file that is being written, as by `cp` and editors: emptied first, and then filled piece by piece.
    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_written_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let mut file = FollowedFile::new(&path);
        assert_eq!(file.next().await.as_deref(), Ok("old"));
        let (see, seen) = tokio::sync::oneshot::channel();
        let writing = async {
            std::fs::write(&path, "").unwrap();
            seen.await.unwrap();
            let mut text = String::new();
            for piece in 0..12 {
                text.push_str(&format!("piece {piece}\n"));
                std::fs::write(&path, &text).unwrap();
                sleep(LOOK / 3).await;
            }
            text
        };
        let reading = async {
            let emptied = file.next().await.unwrap_err();
            assert!(emptied.contains("it is empty"), "{emptied}");
            see.send(()).unwrap();
            file.next().await.unwrap()
        };
        let (written, read) = tokio::join!(writing, reading);
        assert_eq!(read, written);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_being_written_when_it_is_asked_again_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "half").unwrap();
        let mut file = FollowedFile::new(&path);
        let writing = async {
            sleep(LOOK / 2).await;
            std::fs::write(&path, "half and half").unwrap();
        };
        let ((), read) = tokio::join!(writing, file.again());
        assert_eq!(read.as_deref(), Ok("half and half"));
    }

    #[tokio::test]
    async fn what_is_no_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = FollowedFile::new(folder.path());
        assert!(file.next().await.unwrap_err().contains("not a file"));
    }
}
