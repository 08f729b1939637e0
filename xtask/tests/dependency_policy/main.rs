//! What may come in from outside: the bans, licences and sources of `deny.toml`, held without another program.
//!
//! `cargo deny check` does more (advisories, every platform). This covers what a machine that has just built the
//! workspace can know by itself, so that a dependency that breaks the policy fails the tests of the change that brings
//! it.

mod explained;
mod license;
mod packages;
mod policy;

use std::fs;
use std::path::{Path, PathBuf};

use crate::packages::Package;
use crate::policy::Policy;

/// The root of the workspace.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("xtask lies in the root").to_owned()
}

#[test]
fn what_the_workspace_is_built_from_keeps_the_policy() {
    let text = fs::read_to_string(root().join("deny.toml")).expect("the workspace has a policy");
    let policy = Policy::read(&text).expect("the policy is well-formed");
    let packages = Package::all(&root());
    assert!(
        packages.len() > 50,
        "only {} packages: the listing is broken",
        packages.len()
    );
    let complaints = policy.complaints(&packages);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_design_says_why_each_dependency_is_there() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("it is committed");
    let complaints = explained::complaints(&read("Cargo.toml"), &read("DESIGN.md"));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
