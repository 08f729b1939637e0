//! The packages of a build, as listed by cargo.

use std::process::Command;

use super::root;

/// The packages that `cargo run --package PACKAGE` compiles on this machine with the features of
/// `arguments`, without tests.
pub(super) fn compiled_for(package: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}", "--no-dedupe"])
        .args(["--package", package])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut packages: Vec<_> = text
        .lines()
        .map(|line| line.replace(" (proc-macro)", ""))
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages.retain(|line| !line.is_empty());
    packages
}
