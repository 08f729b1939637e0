//! Peers from Python's package index: each in a virtual environment of its own.

use std::fs;
use std::path::Path;

use crate::process::Invocation;

use super::table::Peer;
use super::wrapper::{self, Environment};
use super::{download, on_path};

/// Creates the environment, installs the requirements, and writes a wrapper for each program.
pub(super) fn fetch(root: &Path, peer: &Peer, requirements: &[&str]) -> crate::Result<()> {
    let python = ["python3", "python"]
        .into_iter()
        .find(|python| on_path(python).is_some())
        .ok_or("this machine has no python3")?;
    let inside = format!("venv/{}", peer.name);
    let environment = root.join(&inside);
    fs::create_dir_all(root.join("venv"))?;

    // Debian has `venv` in a separate package; Python's own message says so.
    let make = Invocation::new(python).args(["-m", "venv", "--clear"]);
    download(&make.arg(&environment))?;
    let pip = Invocation::new(environment.join("bin/python")).args(["-m", "pip"]);
    let install = pip
        .clone()
        .args(["install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--no-cache-dir"])
        .args(["--timeout", "30", "--retries", "3"])
        .args(requirements);
    download(&install)?;
    // Nothing more is installed here, and the installer takes 17 MB in each environment.
    download(&pip.args(["uninstall", "--quiet", "--yes", "pip"]))?;

    for program in peer.programs {
        let path = format!("{inside}/{}", program.path);
        let script = wrapper::script(&path, program.arguments, &Environment::default());
        wrapper::write(&root.join("bin").join(program.name), &script)?;
    }
    Ok(())
}
