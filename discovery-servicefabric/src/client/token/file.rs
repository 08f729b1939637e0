//! A token in a file.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{BearerToken, TokenError, TokenSource};

/// A token in a file that another program keeps up to date.
///
/// The file is checked for every call. It is read again when its length or modification time differs, or
/// when the gateway has rejected its token. While it cannot be read the last token is used, which happens
/// briefly when a file is not replaced atomically. At most 64 KiB are read.
#[derive(Clone)]
pub struct TokenFile {
    state: Arc<TokenFileState>,
}

struct TokenFileState {
    path: PathBuf,
    last: Mutex<Option<Found>>,
}

/// The token that was read, and the version of the file.
struct Found {
    version: FileVersion,
    token: BearerToken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    length: u64,
    changed: Option<SystemTime>,
}

impl TokenFile {
    /// Creates a source for the token in the file at `path`, which is not read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let state = TokenFileState {
            path: path.into(),
            last: Mutex::default(),
        };
        Self {
            state: Arc::new(state),
        }
    }
}

#[async_trait]
impl TokenSource for TokenFile {
    async fn token(&self, rejected: Option<&BearerToken>) -> Result<BearerToken, TokenError> {
        let state = Arc::clone(&self.state);
        let rejected = rejected.cloned();
        // Disks block, and those on a network may hang.
        tokio::task::spawn_blocking(move || state.token(rejected.as_ref()))
            .await
            .map_err(|error| TokenError::new("reading the token was cut off").with_source(error))?
    }
}

impl TokenFileState {
    fn token(&self, rejected: Option<&BearerToken>) -> Result<BearerToken, TokenError> {
        // Only one reads; the others wait for what it finds.
        let mut last = self.last.lock();
        match read(&self.path, last.as_ref(), rejected) {
            Ok(Some(found)) => {
                let token = found.token.clone();
                *last = Some(found);
                Ok(token)
            }
            Ok(None) => last
                .as_ref()
                .map(|last| last.token.clone())
                .ok_or_else(|| self.error(io::Error::other("nothing was read"))),
            Err(error) => match &*last {
                Some(last) => {
                    tracing::debug!(target: "discovery::servicefabric", path = %self.path.display(), %error, "the token file cannot be read, the last token is used");
                    Ok(last.token.clone())
                }
                None => Err(self.error(error)),
            },
        }
    }

    fn error(&self, error: io::Error) -> TokenError {
        let path = self.path.display();
        TokenError::new(format!("cannot read a token from {path}")).with_source(error)
    }
}

/// Reads the file unless it is as it was.
fn read(
    path: &Path,
    last: Option<&Found>,
    rejected: Option<&BearerToken>,
) -> io::Result<Option<Found>> {
    const LONGEST: u64 = 64 * 1024;
    // Opening a pipe would wait for its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut file = File::open(path)?;
    let version = FileVersion::of(&file.metadata()?);
    if last.is_some_and(|last| last.version == version && rejected != Some(&last.token)) {
        return Ok(None);
    }
    let mut text = String::new();
    file.by_ref().take(LONGEST + 1).read_to_string(&mut text)?;
    let token = BearerToken::new(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(Found { version, token }))
}

impl FileVersion {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            changed: metadata.modified().ok(),
        }
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile")
            .field("path", &self.state.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> BearerToken {
        BearerToken::new(text).unwrap()
    }

    #[tokio::test]
    async fn a_file_is_read_again_when_it_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let source = TokenFile::new(&path);
        let error = source.token(None).await.unwrap_err().to_string();
        assert!(error.contains("cannot read a token from"), "{error}");

        std::fs::write(&path, "first\n").unwrap();
        assert_eq!(source.token(None).await.unwrap(), token("first"));
        std::fs::write(&path, "the-second").unwrap();
        assert_eq!(source.token(None).await.unwrap(), token("the-second"));

        // Half-written, and then missing: the last one is used.
        std::fs::write(&path, "").unwrap();
        assert_eq!(source.token(None).await.unwrap(), token("the-second"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(source.token(None).await.unwrap(), token("the-second"));
        assert!(!format!("{source:?}").contains("second"));
    }

    #[tokio::test]
    async fn a_rejected_token_is_read_again_although_nothing_seems_to_have_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "aaaa").unwrap();
        let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
        let source = TokenFile::new(&path);
        assert_eq!(source.token(None).await.unwrap(), token("aaaa"));

        // Same length and time: file systems count time in steps.
        std::fs::write(&path, "bbbb").unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(changed)
            .unwrap();
        assert_eq!(source.token(None).await.unwrap(), token("aaaa"));
        assert_eq!(
            source.token(Some(&token("aaaa"))).await.unwrap(),
            token("bbbb")
        );
        assert_eq!(
            source.token(Some(&token("aaaa"))).await.unwrap(),
            token("bbbb")
        );
    }

    #[tokio::test]
    async fn what_is_not_a_token_is_not_sent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        for content in ["two words".to_owned(), "x".repeat(100_000)] {
            std::fs::write(&path, content).unwrap();
            TokenFile::new(&path).token(None).await.unwrap_err();
        }
    }
}
