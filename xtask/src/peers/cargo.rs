//! Tools that are compiled here, from Rust's package registry.

use std::fs;
use std::path::Path;

use crate::process::Invocation;

use super::download;
use super::table::Peer;
use super::wrapper::{self, Environment};

/// Installs a package with the dependencies of its own lock file, and writes a wrapper for each of its programs.
///
/// `package` is a name and a version: `cargo-hack@0.6.46`.
pub(super) fn fetch(root: &Path, peer: &Peer, package: &str) -> crate::Result<()> {
    let place = root.join("cargo").join(peer.name);
    // In a directory of its own: a shared one would be locked against the steps that compile meanwhile.
    let build = place.join("build");
    // Without optimisation: compiling such a tool takes longer than all that it does here.
    let install = Invocation::cargo("install --locked --debug --quiet --root")
        .arg(&place)
        .arg("--target-dir")
        .arg(&build)
        .arg(package)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    download(&install)?;
    fs::remove_dir_all(build)?;
    for program in peer.programs {
        let script = wrapper::script(program.path, program.arguments, &Environment::default());
        wrapper::write(&root.join("bin").join(program.name), &script)?;
    }
    Ok(())
}
