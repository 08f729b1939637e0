//! Allowed dependencies, and the required description of each package.
//!
//! The rules are functions over a generated or a real graph. Tests show that each fails on a graph
//! that violates it; then they check the output of `cargo metadata` and the manifests.

mod direction;
mod graph;
mod manifest;

use std::fs;
use std::path::{Path, PathBuf};

use crate::dependency_direction::graph::Graph;

/// The root of the workspace.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("xtask lies in the root").to_owned()
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_workspace_keeps_its_dependency_direction() {
    assert_none(&direction::complaints(&Graph::of_workspace(&root())));
}

#[test]
fn every_package_says_what_a_user_needs_to_know() {
    let graph = Graph::of_workspace(&root());
    let complaints: Vec<_> = graph
        .packages
        .iter()
        .flat_map(graph::self_description)
        .collect();
    assert_none(&complaints);
}

#[test]
fn versions_and_lints_are_declared_once() {
    let graph = Graph::of_workspace(&root());
    let mut complaints = Vec::new();
    for package in &graph.packages {
        let text = fs::read_to_string(&package.manifest).expect("cargo has just read it");
        complaints.extend(manifest::complaints(&package.name, &text));
    }
    assert_none(&complaints);
}
