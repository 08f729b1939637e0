//! DESIGN.md says why each dependency is there. What may come in at all is in `deny.toml`, which cargo-deny holds.

mod explained;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("xtask lies in the root").to_owned()
}

#[test]
fn the_design_says_why_each_dependency_is_there() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("it is committed");
    let complaints = explained::complaints(&read("Cargo.toml"), &read("DESIGN.md"));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
