//! `cargo xtask ci --tidy`: deletes build output that no later step needs.
//!
//! Cargo keeps everything that it has ever built. With separate programs for each step, the last
//! step would find a full disk. Deleted output is rebuilt on demand.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A part of cargo's build output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Output of `check`, `clippy` and `doc`: crate metadata without code, and pages.
    Checks,
    /// Optimised output except for the programs.
    Optimised,
    /// Programs of tests: most of the output without optimisation.
    Tests,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checks => "what only checks read, and pages,",
            Self::Optimised => "libraries built with optimisation",
            Self::Tests => "programs of tests",
        })
    }
}

/// Deletes a part, if it exists.
pub(crate) fn delete(leftover: Leftover, target: &Path) -> io::Result<()> {
    let debug = target.join("debug");
    match leftover {
        Leftover::Checks => {
            remove_directory(&target.join("doc"))?;
            remove_each(&debug.join("deps"), is_checked_only)
        }
        Leftover::Optimised => optimised(target),
        Leftover::Tests => remove_each(&debug.join("deps"), is_test),
    }
}

/// Deletes output other than the programs of a release. Those of another target were copied to the
/// place of releases.
fn optimised(target: &Path) -> io::Result<()> {
    for directory in [".fingerprint", "build", "deps", "examples", "incremental"] {
        remove_directory(&target.join("release").join(directory))?;
    }
    for entry in list(target)? {
        if entry.join("dist").is_dir() {
            remove_directory(&entry)?;
        }
    }
    // Macros and build scripts for it.
    remove_directory(&target.join("dist"))
}

/// Returns true if a file is a program without another hard link: cargo links the programs of users
/// to their final place.
fn is_test(path: &Path) -> bool {
    path.extension().is_none()
        && path
            .metadata()
            .is_ok_and(|file| file.is_file() && !is_linked(&file))
}

#[cfg(unix)]
fn is_linked(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.nlink() > 1
}

/// Keeps everything on systems whose programs have extensions.
#[cfg(not(unix))]
fn is_linked(_file: &fs::Metadata) -> bool {
    true
}

/// Returns true if a file has the metadata of a crate without its code.
fn is_checked_only(path: &Path) -> bool {
    has_extension(path, "rmeta") && !path.with_extension("rlib").is_file()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn remove_each(directory: &Path, unneeded: impl Fn(&Path) -> bool) -> io::Result<()> {
    for path in list(directory)?.iter().filter(|path| unneeded(path)) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The paths in a directory; none if it does not exist.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
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
    fn of_builds_with_optimisation_the_programs_are_left() {
        let place = built(&[
            "release/gateway",
            "release/build/ring-06/out/flags",
            "x86_64-unknown-linux-gnu/dist/gateway",
            "dist/deps/libserde_derive-07.so",
            "release-files/gateway",
        ]);
        delete(Leftover::Optimised, place.path()).expect("can be deleted");
        for file in [
            "release/gateway",
            "release-files/gateway",
            "debug/deps/libhttp-01.rlib",
        ] {
            assert!(place.path().join(file).exists(), "{file} has to stay");
        }
        for gone in [
            "release/deps",
            "release/build",
            "x86_64-unknown-linux-gnu",
            "dist",
        ] {
            assert!(!place.path().join(gone).exists(), "{gone} is not needed");
        }
    }

    #[cfg(unix)]
    #[test]
    fn of_tests_no_program_is_left_and_programs_of_users_are() {
        let tests = ["debug/deps/it-07", "debug/deps/http-08"];
        let place = built(&[&tests[..], &["debug/deps/gateway-09"]].concat());
        let program = place.path().join("debug/deps/gateway-09");
        fs::hard_link(&program, place.path().join("debug/gateway")).expect("can be linked");
        delete(Leftover::Tests, place.path()).expect("can be deleted");
        only_libraries_are_left(place.path(), &tests);
        assert!(program.exists());
    }

    #[test]
    fn where_nothing_was_built_nothing_is_deleted() {
        let place = tempfile::tempdir().expect("a directory can be made");
        for leftover in [Leftover::Checks, Leftover::Optimised, Leftover::Tests] {
            delete(leftover, place.path()).expect("nothing to do");
        }
    }
}
