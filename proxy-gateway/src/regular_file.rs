//! Files with keys, tokens and certificates.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that is read of a file: a bundle of all public authorities has less than a twentieth of it.
const MOST: u64 = 16 << 20;

/// Reads a file. Opening or reading a pipe or a device may never end, so only regular files are read. Blocks.
///
/// # Errors
///
/// The file cannot be read, is not a regular file, or is too large.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let reject = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    if !std::fs::metadata(path)?.is_file() {
        return reject("it is not a regular file, but a directory, a pipe or a device");
    }
    let mut content = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST {
        return reject("it has more than 16 MiB");
    }
    Ok(content)
}

/// Reads a file as [`read`] does, as text.
///
/// # Errors
///
/// As for [`read`], and if the file is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_some_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path).unwrap(), "text");
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(&path).unwrap(), b"\xff");
        read_text(&path).unwrap_err();
        File::create(&path).unwrap().set_len(MOST).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, MOST);
        File::create(&path).unwrap().set_len(MOST + 1).unwrap();
        for path in [path.as_path(), folder.path(), Path::new("/dev/zero")] {
            assert_eq!(read(path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
