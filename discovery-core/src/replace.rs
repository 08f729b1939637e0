//! Files that are replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file's next content, written to disk beside it.
///
/// It becomes the file's content with [`commit`](Self::commit), or is removed when it is dropped. A crash at any point
/// leaves either the old or the new content.
///
/// The content is written to a new file, `NAME.PID.new`, that only this account can read. An existing file
/// of that name is removed first and not written to: a symbolic link has no effect.
#[derive(Debug)]
#[must_use = "it is removed unless it is committed"]
pub struct Replacement {
    path: PathBuf,
    temporary: PathBuf,
    is_committed: bool,
}

impl Replacement {
    /// Writes the parts one after the other, and waits until they are on disk. Blocks.
    ///
    /// # Errors
    ///
    /// The errors of [`check_directory`] and of the system.
    pub fn write(path: &Path, parts: &[&[u8]]) -> io::Result<Self> {
        check_directory(path)?;
        // Two processes may write while one takes the place of the other.
        let temporary = beside(path, &format!(".{}.new", std::process::id()));
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(&temporary)?;
        // From here on a failure removes it: on a full disk it would be in the way of the next attempt.
        let written = Self {
            path: path.to_owned(),
            temporary,
            is_committed: false,
        };
        for part in parts {
            file.write_all(part)?;
        }
        sync(&file)?;
        Ok(written)
    }

    /// Puts the content in place, and waits until that is on disk. Blocks.
    ///
    /// # Errors
    ///
    /// The errors of the system. The old or the new content may be in place.
    pub fn commit(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        self.is_committed = true;
        #[cfg(unix)]
        sync(&File::open(directory_of(&self.path))?)?;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_committed {
            // Nothing more can be done about it.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Checks that the directory of `path` is not writable by every account of the machine. Blocks.
///
/// # Errors
///
/// Returns an error if every account can write there, which also holds for directories like `/tmp`, or if
/// there is no such directory.
pub fn check_directory(path: &Path) -> io::Result<()> {
    let directory = directory_of(path);
    let metadata = fs::metadata(directory)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if metadata.permissions().mode() & 0o002 != 0 {
            let message = format!(
                "every account of the machine can put files into the directory `{}`; choose another one, or take that right \
                 away with `chmod o-w`",
                directory.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
    }
    #[cfg(not(unix))]
    let _ = metadata;
    Ok(())
}

/// Waits until a file or a directory is on disk.
fn sync(file: &File) -> io::Result<()> {
    #[cfg(all(test, unix))]
    tests::note_synced(file);
    file.sync_all()
}

/// A file in the same directory whose name ends with `suffix`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(suffix);
    path.with_file_name(name)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    thread_local! {
        /// The files that this thread has waited for: inode and length.
        static SYNCED: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note_synced(file: &File) {
        let metadata = file.metadata().expect("it is open");
        let length = if metadata.is_dir() { 0 } else { metadata.len() };
        SYNCED.with_borrow_mut(|synced| synced.push((metadata.ino(), length)));
    }

    #[test]
    fn the_whole_content_is_on_disk_before_it_is_in_place_and_then_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        let written = Replacement::write(&path, &[b"n", b"ew"]).unwrap();
        let content = fs::metadata(&written.temporary).unwrap().ino();
        // With all of its parts, and under its temporary name.
        assert_eq!(SYNCED.take(), [(content, 3)]);
        assert!(!path.exists());
        written.commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), content);
        let directory = fs::metadata(directory.path()).unwrap().ino();
        assert_eq!(SYNCED.take(), [(directory, 0)]);
    }

    #[test]
    fn a_link_in_the_place_of_the_temporary_file_leads_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let path = directory.path().join("kept");
        let temporary = beside(&path, &format!(".{}.new", std::process::id()));
        symlink(&victim, &temporary).unwrap();
        Replacement::write(&path, &[b"n", b"ew"])
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());

        // A link in the place of the file itself is replaced.
        fs::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
        Replacement::write(&path, &[b"newer"])
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");

        // Leftovers of a crash do not get in the way.
        fs::write(&temporary, "half").unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o666)).unwrap();
        Replacement::write(&path, &[b"newest"])
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newest");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_committed_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        drop(Replacement::write(&path, &[b"new"]).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_of_everybody_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        for mode in [0o777, 0o1777, 0o702] {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(directory.path(), permissions).unwrap();
            let error = Replacement::write(&path, &[b"new"]).unwrap_err();
            assert!(error.to_string().contains("chmod o-w"), "{error}");
        }
        let permissions = fs::Permissions::from_mode(0o770);
        fs::set_permissions(directory.path(), permissions).unwrap();
        Replacement::write(&path, &[b"new"])
            .unwrap()
            .commit()
            .unwrap();
        assert!(check_directory(&directory.path().join("missing").join("kept")).is_err());
    }
}
