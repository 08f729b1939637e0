use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The places to search, and the meaning of a missing program.
#[derive(Debug)]
pub(super) struct Lookup {
    /// The folder of `cargo xtask peers`.
    peers: PathBuf,
    directories: Vec<PathBuf>,
    /// True if a missing peer is a failure.
    pub(super) required: bool,
}

impl Lookup {
    pub(super) fn from_env(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let peers = set("PEERS_DIR").map_or_else(
            || target_directory(set("CARGO_TARGET_DIR").map(PathBuf::from)).join("peers"),
            PathBuf::from,
        );
        let mut directories = vec![peers.join("bin")];
        if let Some(path) = set("PATH") {
            directories.extend(std::env::split_paths(&path));
        }
        let required = set("REQUIRE_PEERS").is_some_and(|value| value != "0");
        Self {
            peers,
            directories,
            required,
        }
    }

    /// The folder of Node's modules, if it contains `module`.
    pub(super) fn node_modules_with(&self, module: &str) -> Option<PathBuf> {
        let modules = self.peers.join("node_modules");
        modules.join(module).is_dir().then_some(modules)
    }

    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        self.directories
            .iter()
            .map(|directory| directory.join(name))
            .find(|path| is_executable(path))
    }
}

impl Lookup {
    /// Returns `found`. If it is `None`, prints a message or panics.
    #[track_caller]
    pub(super) fn unless_missing<T>(&self, name: &str, found: Option<T>) -> Option<T> {
        self.or_say(name, "cargo xtask peers", found)
    }

    /// Like [`unless_missing`](Self::unless_missing), for a program of the workspace.
    #[track_caller]
    pub(super) fn unless_built<T>(&self, name: &str, found: Option<T>) -> Option<T> {
        self.or_say(name, &format!("cargo build --bin {name}"), found)
    }

    #[track_caller]
    fn or_say<T>(&self, name: &str, remedy: &str, found: Option<T>) -> Option<T> {
        if found.is_none() {
            assert!(!self.required, "peer missing: {name} — run `{remedy}`");
            announce_skip(name, remedy);
        }
        found
    }
}

/// Reports a skipped test, bypassing the capture of the test harness, which only affects `print!`
/// and `eprint!`.
fn announce_skip(name: &str, remedy: &str) {
    let line = format!("SKIPPED (peer missing): {name} — run `{remedy}`\n");
    // One write, so that lines of parallel tests do not mix. A failure has no one to report to.
    let _ = std::io::stderr().write_all(line.as_bytes());
    // A runner that hides the output of passing tests counts the lines of this file.
    if let Some(path) = std::env::var_os("PEER_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Cargo's target directory: the configured one, else the one with this test program, else that of
/// the workspace.
fn target_directory(set: Option<PathBuf>) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Some(set) = set {
        // Cargo resolves it relative to its start directory, usually the workspace; tests run
        // elsewhere.
        return workspace.join(set);
    }
    std::env::current_exe()
        .ok()
        .and_then(|program| tagged_ancestor(&program))
        .unwrap_or_else(|| workspace.join("target"))
}

/// The nearest directory above with cargo's `CACHEDIR.TAG`.
fn tagged_ancestor(program: &Path) -> Option<PathBuf> {
    program
        .ancestors()
        .find(|directory| directory.join("CACHEDIR.TAG").is_file())
        .map(Path::to_owned)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}
