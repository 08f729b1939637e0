//! Tools that are compiled here, from Rust's package registry.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Invocation;

use super::download;
use super::table::Peer;
use super::wrapper::{self, Environment};

/// Installs a package with the dependencies of its own lock file, and writes a wrapper for each of its programs.
///
/// `package` is a name and a version: `cargo-hack@0.6.46`.
pub(super) fn fetch(root: &Path, peer: &Peer, package: &str) -> crate::Result<()> {
    let place = root.join("cargo").join(peer.name).join("bin");
    fs::create_dir_all(&place)?;
    let kept = install(root, package)?;
    for program in peer.programs {
        fs::copy(
            kept.join("bin").join(program.name),
            place.join(program.name),
        )?;
        let script = wrapper::script(program.path, program.arguments, &Environment::default());
        wrapper::write(&root.join("bin").join(program.name), &script)?;
    }
    Ok(())
}

/// Compiles a package unless another checkout has done so. Returns the directory of the result.
fn install(root: &Path, package: &str) -> crate::Result<PathBuf> {
    let home = cargo_home().unwrap_or_else(|| root.to_owned());
    let kept = home.join("xtask-tools").join(package);
    // Cargo writes this file last.
    if kept.join(".crates.toml").exists() {
        return Ok(kept);
    }
    // A separate directory: a shared one would be locked against parallel steps.
    let build = root.join("cargo").join("build");
    // Without optimisation: compiling such a tool takes longer than its use here.
    let install = Invocation::cargo("install --locked --debug --quiet --root")
        .arg(&kept)
        .arg("--target-dir")
        .arg(&build)
        .arg(package)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    download(&install)?;
    fs::remove_dir_all(build)?;
    Ok(kept)
}

/// Cargo's own directory, where tools outlive a checkout.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    set("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".cargo")))
}
