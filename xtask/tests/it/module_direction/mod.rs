//! The direction of the modules inside `proxy-runtime`: each names only modules of lower layers.
//!
//! The order is the list under "Layers" in the documentation of the crate. The rules are functions
//! over a generated or real tree of files. Tests show that each fails on a tree that violates it;
//! then they check the crate.

mod cycles;
mod layers;
mod names;
mod source;
mod tree;

use std::path::{Path, PathBuf};

use crate::module_direction::source::Files;
use crate::module_direction::tree::Tree;

/// Maximum number of files in a cycle.
const LARGEST_CYCLE: usize = 10;

fn sources() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().expect("xtask lies in the root");
    root.join("proxy-runtime/src")
}

/// Returns the violations in a crate's module order.
fn complaints(files: &Files) -> Vec<String> {
    let tree = Tree::of(files);
    let uses = tree.uses();
    let mut wrong = layers::complaints(&tree.layers, &tree.top_level(), &uses);
    wrong.extend(cycles::across_folders(&uses));
    wrong.extend(cycles::among_files(&uses, LARGEST_CYCLE));
    wrong
}

#[test]
fn modules_of_the_runtime_keep_their_direction() {
    let complaints = complaints(&Files::read(&sources()));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Checks a crate of the given files, whose `lib.rs` puts `low` below `high`.
fn made_up(files: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![(
        "lib.rs",
        "//! # Layers\n//!\n//! 1. `low`\n//! 2. `high`\nmod high;\nmod low;\npub use self::high::Roof;",
    )];
    all.extend_from_slice(files);
    complaints(&Files::made_up(&all))
}

#[test]
fn a_crate_in_order_draws_no_complaint() {
    let complaints = made_up(&[
        ("low.rs", "pub struct Stone;"),
        ("high.rs", "use crate::low::Stone; pub struct Roof(Stone);"),
    ]);
    assert_eq!(complaints, <[String; 0]>::default());
}

#[test]
fn a_cycle_across_folders_is_shown_with_its_edges() {
    let complaints = made_up(&[
        ("low.rs", "pub struct Stone(crate::Roof);"),
        ("high.rs", "use crate::low::Stone; pub struct Roof(Stone);"),
    ]);
    assert_eq!(
        complaints,
        [
            "low.rs names `crate::Roof` of high.rs: `low` (layer 1) must not know `high` (layer 2)",
            "2 folders need one another: high, low\n  \
             high.rs names `crate::low::Stone` of low.rs\n  \
             low.rs names `crate::Roof` of high.rs",
        ]
    );
}

#[test]
fn tests_may_name_everything() {
    let complaints = made_up(&[
        (
            "low/mod.rs",
            "pub struct Stone;\n#[cfg(test)] mod tests;\n#[cfg(test)] fn a() { crate::high::b(); }",
        ),
        ("low/tests.rs", "use crate::high::b;"),
        (
            "high.rs",
            "use crate::low::Stone; pub struct Roof(Stone); pub fn b() {}",
        ),
    ]);
    assert_eq!(complaints, <[String; 0]>::default());
}

#[test]
fn a_large_cycle_inside_a_folder_is_found() {
    let ring = |count: usize| {
        let module: String = (0..count).map(|at| format!("mod m{at};\n")).collect();
        let mut files = vec![
            ("high.rs".to_owned(), "pub struct Roof;".to_owned()),
            ("low/mod.rs".to_owned(), module),
        ];
        files.extend((0..count).map(|at| {
            let next = (at + 1) % count;
            (
                format!("low/m{at}.rs"),
                format!("pub fn m{at}() {{ super::m{next}::m{next}(); }}"),
            )
        }));
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        made_up(&files)
    };
    assert_eq!(ring(LARGEST_CYCLE), <[String; 0]>::default());
    let complaints = ring(LARGEST_CYCLE + 1);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(
        complaints[0].starts_with(&format!(
            "{} files need one another; {LARGEST_CYCLE} is the limit\n",
            LARGEST_CYCLE + 1
        )),
        "{complaints:?}"
    );
    assert!(
        complaints[0].contains("\n  low/m0.rs names `super::m1::m1` of low/m1.rs"),
        "{complaints:?}"
    );
}
