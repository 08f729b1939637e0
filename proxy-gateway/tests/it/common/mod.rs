//! The program under test.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use testkit::peers::{self, PeerOutput, PeerProcess};
use tokio::process::Command;

pub(crate) use testkit::peers::address_after;

/// The program with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proxy-gateway"));
    command
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs the program to its end.
pub(crate) async fn output(arguments: &[&str]) -> PeerOutput {
    peers::output(command(arguments)).await
}

/// Starts the program.
pub(crate) fn spawn(arguments: &[&str]) -> PeerProcess {
    peers::spawn(command(arguments))
}

/// Starts the program, and waits for the last line of its start.
pub(crate) async fn start(arguments: &[&str], ready: &str) -> PeerProcess {
    let mut process = spawn(arguments);
    process.wait_for_output(ready).await;
    process
}

/// A configuration file in its own folder.
pub(crate) struct ConfigFile {
    folder: TempDir,
}

impl ConfigFile {
    pub(crate) fn new(text: &str) -> Self {
        let file = Self {
            folder: tempfile::tempdir().expect("there is room for a folder"),
        };
        file.write(text);
        file
    }

    /// Replaces the contents with a rename, as deployments do.
    pub(crate) fn write(&self, text: &str) {
        let new = self.folder.path().join("new.json");
        std::fs::write(&new, text).expect("the folder is ours");
        std::fs::rename(&new, self.path()).expect("the folder is ours");
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("appsettings.json")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn argument(&self) -> String {
        self.path().display().to_string()
    }
}
