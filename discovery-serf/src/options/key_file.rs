//! The agents' key in a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::client::AuthKey;

/// Maximum length of a key.
const LONGEST: u64 = 64 * 1024;

/// The reason why no key could be read from a file.
#[derive(Debug, thiserror::Error)]
#[error("the agents' key cannot be read from `{}`", path.display())]
pub struct KeyFileError {
    path: PathBuf,
    source: io::Error,
}

/// Reads the key in the file at `path`: its text without white space around it. Blocks.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not UTF-8, is empty, or is longer than 64 KiB.
pub(crate) fn read_key(path: &Path) -> Result<AuthKey, KeyFileError> {
    let error = |source| KeyFileError {
        path: path.to_owned(),
        source,
    };
    let text = read(path).map_err(error)?;
    Ok(AuthKey::from(text.trim()))
}

fn read(path: &Path) -> io::Result<String> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    // Opening a pipe would wait for its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(invalid("it is not a file"));
    }
    let mut text = String::new();
    File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(invalid("it is longer than a key can be"));
    }
    if text.trim().is_empty() {
        return Err(invalid("it is empty"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_text_without_the_end_of_the_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, " sekrit\r\n").unwrap();
        assert_eq!(read_key(&path).unwrap(), AuthKey::from("sekrit"));
    }

    #[test]
    fn what_is_no_key_is_named_and_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let long = "k".repeat(LONGEST as usize + 1);
        let missing = read_key(&path).unwrap_err();
        assert!(missing.to_string().contains("key"), "{missing}");
        assert_eq!(missing.source.kind(), io::ErrorKind::NotFound);
        for (content, why) in [
            (&b"\n"[..], "it is empty"),
            (&[0xff, 0xfe], "stream did not contain valid UTF-8"),
            (long.as_bytes(), "it is longer than a key can be"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = read_key(&path).unwrap_err();
            assert_eq!(error.source.to_string(), why);
        }
        let error = read_key(directory.path()).unwrap_err();
        assert_eq!(error.source.to_string(), "it is not a file");
    }
}
