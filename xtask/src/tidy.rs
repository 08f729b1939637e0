//! What can be deleted between the steps of a run, since no later step of it reads that: `cargo xtask ci --tidy`.
//!
//! Cargo keeps whatever it has ever built. Where each step builds its own programs, the last of them finds a disk full of
//! what the first ones needed. What is deleted here is built again when somebody asks for it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A part of what cargo has built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Of `check`, `clippy` and `doc`: descriptions of crates of which no code was made, and pages.
    Checks,
    /// Everything that was built without optimisation.
    Debug,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checks => "what only checks read, and pages,",
            Self::Debug => "builds without optimisation",
        })
    }
}

/// Deletes it, as far as it is there.
pub(crate) fn delete(leftover: Leftover, target: &Path) -> io::Result<()> {
    let debug = target.join("debug");
    match leftover {
        Leftover::Checks => {
            remove_directory(&target.join("doc"))?;
            remove_each(&debug.join("deps"), is_checked_only)
        }
        Leftover::Debug => remove_directory(&debug),
    }
}

/// Whether a file describes a crate whose code is not beside it.
fn is_checked_only(path: &Path) -> bool {
    has_extension(path, "rmeta") && !path.with_extension("rlib").is_file()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn remove_each(directory: &Path, unneeded: impl Fn(&Path) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    for path in paths.iter().filter(|path| unneeded(path)) {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn remove_directory(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARIES: [&str; 6] = [
        "debug/deps/libhttp-01.rlib",
        "debug/deps/libhttp-01.rmeta",
        "debug/deps/http-01.d",
        "debug/deps/libserde_derive-03.so",
        "debug/build/ring-04/out/flags",
        "release/deps/program-05",
    ];

    fn built(more: &[&str]) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a directory can be made");
        for file in LIBRARIES.iter().chain(more) {
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().expect("it has one")).expect("can be made");
            fs::write(&path, "").expect("can be written");
        }
        place
    }

    #[track_caller]
    fn only_libraries_are_left(place: &Path, gone: &[&str]) {
        for file in LIBRARIES {
            assert!(place.join(file).exists(), "{file} has to stay");
        }
        for file in gone {
            assert!(!place.join(file).exists(), "{file} is not needed");
        }
    }

    #[test]
    fn of_checks_no_description_without_code_and_no_page_is_left() {
        let checked = [
            "debug/deps/libhttp-02.rmeta",
            "doc/http/index.html",
            "doc/search.js",
        ];
        let place = built(&checked);
        delete(Leftover::Checks, place.path()).expect("can be deleted");
        only_libraries_are_left(place.path(), &checked);
    }

    #[test]
    fn of_builds_without_optimisation_nothing_is_left() {
        let place = built(&[]);
        delete(Leftover::Debug, place.path()).expect("can be deleted");
        assert!(!place.path().join("debug").exists());
        assert!(place.path().join("release/deps/program-05").exists());
    }

    #[test]
    fn where_nothing_was_built_nothing_is_deleted() {
        let place = tempfile::tempdir().expect("a directory can be made");
        for leftover in [Leftover::Checks, Leftover::Debug] {
            delete(leftover, place.path()).expect("nothing to do");
        }
    }
}
