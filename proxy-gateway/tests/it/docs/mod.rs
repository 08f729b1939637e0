//! Tests of the pages under `docs`: their tables, their configurations, their commands.

mod commands;
mod defaults;
mod errors;
mod faults;
mod keys;
pub(crate) mod markdown;
mod monitoring;
mod observed;
mod schema;
mod snippets;
mod yarp;

use std::path::{Path, PathBuf};

use markdown::Page;

/// The root of the workspace.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("the package lies in the root")
        .to_owned()
}

/// The page of this name under `docs`.
pub(crate) fn page(name: &str) -> Page {
    Page::read(&root(), &format!("docs/{name}"))
}

/// All pages under `docs`, and the front page of this package.
fn pages() -> Vec<Page> {
    let root = root();
    let mut paths: Vec<_> = std::fs::read_dir(root.join("docs"))
        .expect("there are pages")
        .map(|entry| entry.expect("it can be listed").file_name())
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    paths.push("proxy-gateway/README.md".to_owned());
    paths.sort_unstable();
    let pages: Vec<_> = paths.iter().map(|path| Page::read(&root, path)).collect();
    assert!(pages.len() > 5, "only {} pages found", pages.len());
    pages
}
