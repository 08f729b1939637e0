//! Real programs to test against: curl, nginx, Consul and others.
//!
//! A program is searched in `$PEERS_DIR/bin` (default: `peers/bin` in cargo's target directory,
//! where `cargo xtask peers` installs programs) and then on the `PATH`. A test with a missing peer
//! reports that on the real standard error of the process, which the test harness does not capture,
//! and returns; with `REQUIRE_PEERS=1` it fails instead. The line is also appended to the file
//! named by `PEER_SKIPS`, if that exists.
//!
//! ```
//! use testkit::{origin::Origin, peers};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let Some(curl) = peers::find("curl") else { return };
//!
//! let origin = Origin::named("a");
//! let mut command = curl.command();
//! command.args(["--silent", "--show-error", &origin.url()]);
//! let output = peers::output(command).await.expect_success();
//! assert_eq!(output.stdout, "a");
//! # }
//! ```
//!
//! Use [`spawn`] for a program that keeps running; it and its children are killed when the test
//! ends:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use testkit::peers;
//!
//! let Some(shell) = peers::find("sh") else { return };
//! let mut command = shell.command();
//! command.args(["-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 1 & wait; done"]);
//! let mut process = peers::spawn(command);
//! process.wait_for_output("ready").await;
//! process.terminate();
//! assert_eq!(process.wait().await.code(), Some(3));
//! # }
//! ```

mod captured;
mod lookup;
mod output;
mod port;
mod process;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use self::lookup::Lookup;
pub use self::output::{PeerOutput, address_after, output, output_within};
pub use self::port::free_port;
pub use self::process::{PeerProcess, spawn};

/// A real program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    name: String,
    path: PathBuf,
}

/// Finds a program. `None`, with a message, if it is missing.
///
/// # Panics
///
/// Panics if it is missing and `REQUIRE_PEERS` is 1.
#[track_caller]
pub fn find(name: &str) -> Option<Peer> {
    let lookup = Lookup::from_env(|variable| std::env::var_os(variable));
    let path = lookup.find(name);
    let found = path.map(|path| Peer {
        name: name.to_owned(),
        path,
    });
    lookup.unless_missing(name, found)
}

/// Finds another program of this workspace, beside one that cargo has built for the tests:
/// `env!("CARGO_BIN_EXE_…")`. Cargo builds it with the tests of the whole workspace, not with those
/// of a single package. `None`, with a message, if it is missing.
///
/// # Panics
///
/// Panics if it is missing and `REQUIRE_PEERS` is 1.
#[track_caller]
pub fn built_beside(program: &str, name: &str) -> Option<Peer> {
    let lookup = Lookup::from_env(|variable| std::env::var_os(variable));
    let path = Path::new(program).with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let found = path.is_file().then(|| Peer {
        name: name.to_owned(),
        path,
    });
    lookup.unless_built(name, found)
}

/// Finds a Node package that `cargo xtask peers` installs, and returns its folder `node_modules`.
/// `None`, with a message, if it is missing.
///
/// # Panics
///
/// Panics if it is missing and `REQUIRE_PEERS` is 1.
#[track_caller]
pub fn node_module(name: &str) -> Option<PathBuf> {
    let lookup = Lookup::from_env(|variable| std::env::var_os(variable));
    lookup.unless_missing(name, lookup.node_modules_with(name))
}

impl Peer {
    /// The name that was searched for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that runs the program: killed when dropped, without standard input, with captured
    /// output. For [`output()`] and [`spawn`].
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}
