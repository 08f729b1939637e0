//! Peers from Node's package registry: all in one `node_modules`.

use std::path::Path;

use crate::process::Invocation;

use super::{download, on_path};

/// Installs a package with its exact version; none of its scripts is run.
pub(super) fn fetch(root: &Path, package: &str) -> crate::Result<()> {
    let own = root.join("bin/npm");
    let npm = if own.is_file() {
        own
    } else {
        on_path("npm").ok_or("there is no npm: fetch the peer `node` first")?
    };
    let install = Invocation::new(npm)
        .args(["install", "--prefix"])
        .arg(root)
        .args([
            "--save-exact",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .arg("--cache")
        .arg(root.join("npm-cache"))
        .arg(package);
    download(&install)?;
    Ok(())
}
