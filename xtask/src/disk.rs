//! Disk space: the free space, and the space that a build needs.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::process::Invocation;

/// Time limit for a query: a dead network file system never responds.
const LIMIT: Duration = Duration::from_secs(30);

/// A number of bytes, printed in readable units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub(crate) u64);

impl Bytes {
    pub(crate) const fn megabytes(count: u64) -> Self {
        Self(count * 1_000_000)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0 / 100_000_000;
        match self.0 {
            0..1_000_000_000 => write!(f, "{} MB", self.0 / 1_000_000),
            _ => write!(f, "{}.{} GB", tenths / 10, tenths % 10),
        }
    }
}

/// The size of a directory, and the free space of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) held: Bytes,
    /// `None` if unknown.
    pub(crate) free: Option<Bytes>,
}

impl Room {
    /// Measures a directory. A missing one has size 0.
    pub(crate) fn of(directory: &Path) -> io::Result<Self> {
        let existing = directory.ancestors().find(|path| path.is_dir());
        Ok(Self {
            held: Bytes(held(directory)?),
            free: existing.and_then(free),
        })
    }

    /// Checks that a run fits whose output grows to `most`, including existing output.
    ///
    /// # Errors
    ///
    /// Fails with a sentence for the user.
    pub(crate) fn suffices(&self, most: Bytes, directory: &Path) -> Result<(), String> {
        let needed = Bytes(most.0.saturating_sub(self.held.0));
        match self.free {
            Some(free) if free < needed => Err(format!(
                "too little disk space: this run needs {needed} more below {} ({most} in all), and {free} are free; make \
                 room, let CARGO_TARGET_DIR name a larger disk, or use `--tidy` with CARGO_INCREMENTAL=0, \
                 CARGO_PROFILE_DEV_DEBUG=0 and CARGO_PROFILE_DEV_STRIP=symbols as CI does",
                directory.display()
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on disk: {} in the target directory", self.held)?;
        match self.free {
            Some(free) => write!(f, ", {free} free"),
            None => f.write_str(", and nobody says how much is free"),
        }
    }
}

/// The size of all files below a directory. Hard links, which cargo creates, count once.
fn held(directory: &Path) -> io::Result<u64> {
    let mut total = 0;
    let mut seen = std::collections::HashSet::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = match fs::read_dir(&directory) {
            // Another process may build or clean at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // Of the entry itself: the targets of links do not count.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                open.push(entry.path());
            } else if identity(&metadata).is_none_or(|file| seen.insert(file)) {
                total += metadata.len();
            }
        }
    }
    Ok(total)
}

/// The identity of a file with several hard links; `None` for others.
#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    (metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_metadata: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns the free space of the disk that contains a directory, as `df` reports it.
fn free(directory: &Path) -> Option<Bytes> {
    let ask = Invocation::new("df")
        .args(["-P", "-k"])
        .arg(directory)
        .env("LC_ALL", "C");
    let (ended, output) = ask.capture(LIMIT).ok()?;
    ended.is_success().then(|| available(&output)).flatten()
}

/// Parses the table of `df -P -k`, in the format of POSIX: the fourth column of the second line.
fn available(table: &str) -> Option<Bytes> {
    let kibibytes: u64 = table
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()?;
    Some(Bytes(kibibytes.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABYTE: u64 = 1_000_000_000;

    #[test]
    fn the_table_of_df_is_read() {
        let table = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
                     /dev/vda         263174212 19000000  76000000      21% /\n";
        assert_eq!(available(table), Some(Bytes(76_000_000 * 1024)));
        assert_eq!(available("df: no such thing\n"), None);
        assert_eq!(available("a\nb c d - e f\n"), None);
    }

    #[test]
    fn what_is_here_already_need_not_be_free() {
        let directory = Path::new("target");
        let room = |held, free: Option<u64>| Room {
            held: Bytes(held),
            free: free.map(Bytes),
        };
        let most = Bytes(3 * GIGABYTE);
        assert_eq!(
            room(0, Some(3 * GIGABYTE)).suffices(most, directory),
            Ok(())
        );
        assert_eq!(
            room(2 * GIGABYTE, Some(GIGABYTE)).suffices(most, directory),
            Ok(())
        );
        assert_eq!(
            room(9 * GIGABYTE, Some(0)).suffices(most, directory),
            Ok(())
        );
        // Unknown free space is no error.
        assert_eq!(room(0, None).suffices(most, directory), Ok(()));
        let why = room(GIGABYTE / 2, Some(GIGABYTE))
            .suffices(most, directory)
            .unwrap_err();
        assert!(
            why.starts_with(
                "too little disk space: this run needs 2.5 GB more below target (3.0 GB in all), and 1.0 GB are free"
            ),
            "{why}"
        );
    }

    #[test]
    fn sizes_are_for_people() {
        let texts = [0, 999_999_999, GIGABYTE, 2_550_000_000].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(texts, ["0 MB", "999 MB", "1.0 GB", "2.5 GB"]);
    }

    #[test]
    fn a_file_with_two_names_counts_once_and_what_is_not_there_holds_nothing() {
        let place = tempfile::tempdir().expect("a directory can be made");
        fs::create_dir(place.path().join("deps")).expect("can be made");
        let file = place.path().join("deps/program-0123");
        fs::write(&file, [0; 1000]).expect("can be written");
        fs::hard_link(&file, place.path().join("program")).expect("can be linked");
        fs::write(place.path().join("other"), [0; 10]).expect("can be written");
        let expected = if cfg!(unix) { 1010 } else { 2010 };
        let room = Room::of(place.path()).expect("can be read");
        assert_eq!(room.held, Bytes(expected));
        let room = Room::of(&place.path().join("not/there")).expect("nothing to read");
        assert_eq!(room.held, Bytes(0));
        if cfg!(target_os = "linux") {
            assert!(room.free.is_some(), "the disk around it is asked");
        }
    }
}
