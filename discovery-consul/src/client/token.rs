//! ACL tokens.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use parking_lot::Mutex;

/// The interval at which the file is checked after its token was rejected.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The secret id of an ACL token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

/// A text is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is empty, too long, or has characters that no token has")]
#[non_exhaustive]
pub struct InvalidToken;

impl Token {
    /// Creates a token. White space around it is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is empty, longer than 64 KiB, or has characters other than visible
    /// ASCII.
    pub fn new(token: &str) -> Result<Self, InvalidToken> {
        const LONGEST: usize = 64 * 1024;
        let token = token.trim();
        let is_token = !token.is_empty()
            && token.len() <= LONGEST
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self(token.into())).ok_or(InvalidToken)
    }

    pub(super) fn header(&self) -> HeaderValue {
        let mut value =
            HeaderValue::from_str(&self.0).expect("visible ASCII may be in the value of a header");
        value.set_sensitive(true);
        value
    }

    /// A text without the token, should an agent repeat it.
    pub(super) fn removed_from(&self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text);
        text.replace(&*self.0, "[token]").into_bytes()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The source of the token.
#[derive(Debug)]
pub(super) enum Tokens {
    None,
    Fixed(Token),
    File(Arc<TokenFile>),
}

impl Tokens {
    /// The token to send now.
    pub(super) async fn current(&self) -> Result<Option<Token>, TokenFileError> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(token) => Ok(Some(token.clone())),
            Self::File(file) => {
                let reading = Arc::clone(file);
                // Disks block, and those on a network may hang.
                match tokio::task::spawn_blocking(move || reading.current()).await {
                    Ok(token) => token.map(Some),
                    Err(_) => Err(file.error(io::Error::other("reading was cut off"))),
                }
            }
        }
    }

    /// The token that was sent last, without looking at any file.
    pub(super) fn known(&self) -> Option<Token> {
        match self {
            Self::None => None,
            Self::Fixed(token) => Some(token.clone()),
            Self::File(file) => {
                let last = file.last.lock();
                last.as_ref().map(|found| found.token.clone())
            }
        }
    }

    /// Returns when the file with the token has changed since it was last read before this call. The file
    /// is checked each second. Never returns without a file.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let file = match self {
            Self::File(file) => Some(Arc::clone(file)),
            Self::None | Self::Fixed(_) => None,
        };
        // Not what is read later: another question may have read the new file before this one looks.
        let known = file.as_ref().and_then(|file| file.version_read());
        async move {
            let Some(file) = file else {
                return std::future::pending().await;
            };
            loop {
                let looking = Arc::clone(&file);
                let look = tokio::task::spawn_blocking(move || looking.is_other_than(known));
                if let Ok(true) = look.await {
                    return;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Records that the agent has rejected the token: a file is read again even if it seems unchanged.
    pub(super) fn rejected(&self) {
        if let Self::File(file) = self {
            file.forget_version();
        }
    }
}

/// A token in a file that another program keeps up to date.
///
/// The file is checked for every call and read again when its length or modification time differs. While it
/// cannot be read the last token is used, which happens briefly when a file is not replaced atomically.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<Option<Found>>,
}

/// The version of the file that was read: its length and the time of its last change. `None` for a version
/// that no longer counts.
type Version = (u64, Option<SystemTime>);

#[derive(Debug)]
struct Found {
    version: Option<Version>,
    /// The state of the file when the token was read.
    read: Version,
    token: Token,
}

/// The file with the token cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read a token from {}", path.display())]
pub(super) struct TokenFileError {
    path: PathBuf,
    source: io::Error,
}

impl TokenFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            last: Mutex::default(),
        }
    }

    fn current(&self) -> Result<Token, TokenFileError> {
        // Only one reads; the others wait for what it finds.
        let mut last = self.last.lock();
        let known = last.as_ref().and_then(|found| found.version);
        match (self.read(known), &*last) {
            (Ok(Some(found)), _) => {
                let token = found.token.clone();
                *last = Some(found);
                Ok(token)
            }
            (Ok(None) | Err(_), Some(found)) => Ok(found.token.clone()),
            (Ok(None), None) => Err(self.error(io::Error::other("nothing was read"))),
            (Err(error), None) => Err(self.error(error)),
        }
    }

    /// Reads the token, unless the file is unchanged.
    fn read(&self, known: Option<Version>) -> io::Result<Option<Found>> {
        const LONGEST: u64 = 64 * 1024 + 1;
        let file = File::open(&self.path)?;
        let version = version_of(&file.metadata()?);
        if known == Some(version) {
            return Ok(None);
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        let token = Token::new(&text).map_err(io::Error::other)?;
        Ok(Some(Found {
            version: Some(version),
            read: version,
            token,
        }))
    }

    /// The state of the file when its token was read last.
    fn version_read(&self) -> Option<Version> {
        self.last.lock().as_ref().map(|found| found.read)
    }

    /// Returns true if the file exists with a version other than `known`.
    fn is_other_than(&self, known: Option<Version>) -> bool {
        let now = std::fs::metadata(&self.path).map(|file| version_of(&file));
        now.is_ok_and(|now| known != Some(now))
    }

    fn forget_version(&self) {
        let mut last = self.last.lock();
        if let Some(found) = &mut *last {
            found.version = None;
        }
    }

    fn error(&self, source: io::Error) -> TokenFileError {
        TokenFileError {
            path: self.path.clone(),
            source,
        }
    }
}

fn version_of(file: &Metadata) -> Version {
    (file.len(), file.modified().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    #[test]
    fn tokens_are_visible_ascii_and_are_not_shown() {
        let shown = token(" b1gs33cr3t\n");
        assert_eq!(format!("{shown:?}"), "Token(…)");
        assert!(shown.header().is_sensitive());
        assert_eq!(shown.header(), "b1gs33cr3t");
        assert_eq!(shown.removed_from(b"no b1gs33cr3t!"), b"no [token]!");
        for bad in ["", " ", "a b", "a\r\nX: y", "tökèn"] {
            assert_eq!(Token::new(bad), Err(InvalidToken), "{bad:?}");
        }
    }

    #[tokio::test]
    async fn a_file_is_read_again_when_it_changes_and_kept_while_it_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let tokens = Tokens::File(Arc::new(TokenFile::new(path.clone())));
        let error = tokens.current().await.unwrap_err().to_string();
        assert!(error.starts_with("cannot read a token from"), "{error}");
        std::fs::write(&path, "first\n").unwrap();
        assert_eq!(tokens.current().await.unwrap(), Some(token("first")));
        std::fs::write(&path, "the-second").unwrap();
        assert_eq!(tokens.current().await.unwrap(), Some(token("the-second")));
        std::fs::write(&path, "").unwrap();
        assert_eq!(tokens.current().await.unwrap(), Some(token("the-second")));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tokens.current().await.unwrap(), Some(token("the-second")));
        assert!(!format!("{tokens:?}").contains("second"));
    }

    #[tokio::test]
    async fn a_change_of_the_file_is_noticed_within_moments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let tokens = Tokens::File(Arc::new(TokenFile::new(path.clone())));
        let noticed = async |change: &dyn Fn()| {
            let waiting = tokens.changed();
            let changing = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                change();
            };
            let both = async { tokio::join!(waiting, changing) };
            tokio::time::timeout(Duration::from_secs(120), both)
                .await
                .unwrap();
        };
        tokens.current().await.unwrap_err();
        noticed(&|| std::fs::write(&path, "first").unwrap()).await;
        assert_eq!(tokens.current().await.unwrap(), Some(token("first")));
        // A rejected token is the same until it is replaced.
        tokens.rejected();
        let soon = Duration::from_millis(2_500);
        assert!(tokio::time::timeout(soon, tokens.changed()).await.is_err());
        noticed(&|| std::fs::write(&path, "the-second").unwrap()).await;
        // Another question reads the new file before this one looks.
        tokens.current().await.unwrap();
        let waiting = tokens.changed();
        std::fs::write(&path, "the-third-one").unwrap();
        assert_eq!(
            tokens.current().await.unwrap(),
            Some(token("the-third-one"))
        );
        tokio::time::timeout(Duration::from_secs(120), waiting)
            .await
            .unwrap();
        let fixed = Tokens::Fixed(token("x"));
        assert!(tokio::time::timeout(soon, fixed.changed()).await.is_err());
    }

    #[tokio::test]
    async fn a_rejected_token_is_read_again_although_nothing_seems_to_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "aaaa").unwrap();
        let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
        let tokens = Tokens::File(Arc::new(TokenFile::new(path.clone())));
        assert_eq!(tokens.current().await.unwrap(), Some(token("aaaa")));
        // Same length and time: file systems count time in steps.
        std::fs::write(&path, "bbbb").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(changed).unwrap();
        assert_eq!(tokens.current().await.unwrap(), Some(token("aaaa")));
        tokens.rejected();
        assert_eq!(tokens.current().await.unwrap(), Some(token("bbbb")));
    }
}
