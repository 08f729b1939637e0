//! DESIGN.md has a reason for each dependency. `deny.toml` lists what is allowed, and cargo-deny
//! checks that.

mod explained;
mod packages;

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

#[test]
fn small_examples_and_the_demo_are_few_packages_and_no_gateway_has_an_emulator() {
    // A user who tries an example waits for all of them.
    let examples = packages::compiled_for("examples", &[]).len();
    assert!(examples <= 124, "{examples}");
    // Five of them compress `/metrics`.
    let demo = packages::compiled_for("demo", &[]).len();
    assert!(demo <= 147, "{demo}");
    let gateway = packages::compiled_for("proxy-gateway", &[]);
    assert!(
        !gateway
            .iter()
            .any(|package| package.starts_with("servicefabric-emulator "))
    );
}
