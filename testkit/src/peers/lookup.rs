use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Where to look, and what it means if nothing is found.
#[derive(Debug)]
pub(super) struct Lookup {
    /// What `cargo xtask peers` has fetched.
    peers: PathBuf,
    directories: Vec<PathBuf>,
    /// Whether a missing peer is a failure.
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

    /// The folder of Node's modules, if `module` is among them.
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
    /// What was found; says so, or panics, when there is nothing.
    #[track_caller]
    pub(super) fn unless_missing<T>(&self, name: &str, found: Option<T>) -> Option<T> {
        self.or_say(name, "cargo xtask peers", found)
    }

    /// The same for a program of the workspace's own.
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

/// Says that a test was left out, past the capture of the test harness, which catches only what `print!` and `eprint!`
/// write.
fn announce_skip(name: &str, remedy: &str) {
    let line = format!("SKIPPED (peer missing): {name} — run `{remedy}`\n");
    // In one write, so that lines of parallel tests do not mix. If even that fails, nobody is there to read it.
    let _ = std::io::stderr().write_all(line.as_bytes());
    // A runner that hides the output of tests that pass counts the lines of this file.
    if let Some(path) = std::env::var_os("PEER_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Cargo's target directory: the one that was set, else the one that holds this test program, else the workspace's own.
fn target_directory(set: Option<PathBuf>) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Some(set) = set {
        // Cargo takes it relative to where it was started, which is the workspace as a rule; tests run elsewhere.
        return workspace.join(set);
    }
    std::env::current_exe()
        .ok()
        .and_then(|program| tagged_ancestor(&program))
        .unwrap_or_else(|| workspace.join("target"))
}

/// Cargo marks its target directory with a `CACHEDIR.TAG`.
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
