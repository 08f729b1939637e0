//! Peers from Node's package registry: all in one `node_modules`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Invocation;

use super::table::Peer;
use super::wrapper::{self, Environment};
use super::{PROBE_LIMIT, download, last_lines, on_path};

/// Installs a package with its exact version, and writes a wrapper for each of its programs; a
/// package without programs is loaded once. None of its scripts is run.
///
/// `package` is a name and a version: `playwright-core@1.64.1`.
pub(super) fn fetch(root: &Path, peer: &Peer, package: &str) -> crate::Result<()> {
    let cache = root.join("npm-cache");
    let install = Invocation::new(program(root, "npm")?)
        .args(["install", "--prefix"])
        .arg(root)
        .args([
            "--save-exact",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        // A Node that is too old is an error here, instead of a puzzle in a test.
        .arg("--engine-strict")
        // Its own retries wait for a minute; ours are faster.
        .arg("--fetch-retries=0")
        .arg("--cache")
        .arg(&cache)
        .arg(package);
    download(&install)?;
    // A second copy of what is installed now.
    if cache.is_dir() {
        fs::remove_dir_all(&cache)?;
    }
    if peer.programs.is_empty() {
        return load(root, package);
    }
    for program in peer.programs {
        let script = wrapper::script(program.path, program.arguments, &Environment::default());
        wrapper::write(&root.join("bin").join(program.name), &script)?;
    }
    Ok(())
}

/// Checks that Node can load the package.
fn load(root: &Path, package: &str) -> crate::Result<()> {
    let load = Invocation::new(program(root, "node")?)
        .args(["--eval", "require(process.argv[1])"])
        .arg(name(package))
        .env("NODE_PATH", root.join("node_modules"));
    let (ended, output) = load.capture(PROBE_LIMIT)?;
    if ended.is_success() {
        Ok(())
    } else {
        Err(format!("`{load}` failed ({ended}): {}", last_lines(&output)).into())
    }
}

/// Finds the fetched program, or else the one on the PATH: the order of tests.
fn program(root: &Path, name: &str) -> Result<PathBuf, String> {
    let own = root.join("bin").join(name);
    if own.is_file() {
        return Ok(own);
    }
    on_path(name).ok_or_else(|| format!("there is no {name}: fetch the peer `node` first"))
}

/// The name of a package without its version; it may begin with the `@` of a scope.
fn name(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => &package[..at],
        _ => package,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_where_the_version_begins() {
        assert_eq!(name("playwright-core@1.64.1"), "playwright-core");
        assert_eq!(name("@scope/name@1.0.0"), "@scope/name");
        assert_eq!(name("@scope/name"), "@scope/name");
        assert_eq!(name("plain"), "plain");
    }
}
