//! `cargo xtask public-api`: what the published libraries show to others, against checked-in lists.
//!
//! The lists come from rustdoc's JSON, whose format is not stable; so only a few of its keys are
//! used.

mod external_types;
mod public;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::checks::LIMIT;
use crate::process::Invocation;
use crate::say;
use crate::steps::Outcome;
use crate::workspace::Workspace;

/// The command that writes the lists.
const RENEW: &str = "xtask public-api --renew";

/// Names of items or crates.
type Names = BTreeSet<String>;

/// Rustdoc's JSON by published library.
type Pages = BTreeMap<String, Value>;

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write the lists instead of comparing with them
    #[arg(long)]
    renew: bool,
}

/// A checked-in list.
struct Listed {
    place: PathBuf,
    /// The text that it has to have.
    text: String,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    if options.renew {
        let pages = pages(&workspace)?;
        let lists = lists(&workspace, &pages)?;
        for place in stale_lists(&lists)? {
            fs::remove_file(&place)?;
            say!("deleted: {}", place.display());
        }
        for Listed { place, text } in lists {
            fs::write(&place, text)?;
            say!("written: {}", place.display());
        }
        public::check_sizes(&pages)?;
        return Ok(ExitCode::SUCCESS);
    }
    match step(&workspace)? {
        Outcome::Failed { why, .. } => Err(why.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Compares with the lists, and the sizes with their limits.
pub(crate) fn step(workspace: &Workspace) -> crate::Result<Outcome> {
    let pages = pages(workspace)?;
    let lists = lists(workspace, &pages)?;
    let mut differing = Vec::new();
    for place in stale_lists(&lists)? {
        say!("{}: there is no such library", place.display());
        differing.push(place.display().to_string());
    }
    for Listed { place, text } in lists {
        let difference = difference(&fs::read_to_string(&place).unwrap_or_default(), &text);
        if difference.is_empty() {
            continue;
        }
        say!("{}:", place.display());
        for line in difference {
            say!("{line}");
        }
        differing.push(place.display().to_string());
    }
    let count = public::check_sizes(&pages)?;
    Ok(match differing.is_empty() {
        true => Outcome::Passed {
            note: Some(format!("{count} items")),
        },
        false => Outcome::Failed {
            why: format!("public items do not match {}", differing.join(", ")),
            repeat: vec![Invocation::cargo(RENEW).to_string()],
        },
    })
}

fn lists(workspace: &Workspace, pages: &Pages) -> crate::Result<Vec<Listed>> {
    let ours: Names = workspace.package_names().map(identifier).collect();
    let mut lists = vec![external_types::list(pages, &ours)?];
    lists.extend(public::lists(pages)?);
    Ok(lists)
}

/// The files beside the lists of public items that belong to no published library.
fn stale_lists(lists: &[Listed]) -> crate::Result<Vec<PathBuf>> {
    let mut places = Vec::new();
    for file in fs::read_dir(public::DIRECTORY)? {
        places.push(file?.path());
    }
    places.sort();
    Ok(without_library(places, lists))
}

/// The places that no list has.
fn without_library(mut places: Vec<PathBuf>, lists: &[Listed]) -> Vec<PathBuf> {
    places.retain(|place| lists.iter().all(|list| list.place != *place));
    places
}

/// Has rustdoc describe the published libraries, with all features.
fn pages(workspace: &Workspace) -> crate::Result<Pages> {
    let target = workspace.target_directory();
    // Set for rustdoc only: build scripts read the variable, and everything would be compiled for
    // it again.
    let rustdoc = target.join("rustdoc-with-json.sh");
    fs::create_dir_all(target)?;
    write_program(
        &rustdoc,
        "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n",
    )?;
    let document = Invocation::cargo("doc --workspace --lib --no-deps --all-features")
        .env("RUSTDOC", rustdoc)
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    say!("{document}");
    let ended = document.show(LIMIT)?;
    if !ended.is_success() {
        return Err(format!("`{document}` failed: {ended}").into());
    }
    let mut pages = Pages::new();
    for library in workspace.published_libraries() {
        let page = format!("doc/{}.json", identifier(library));
        let page = fs::read_to_string(target.join(page))?;
        pages.insert(library.to_owned(), serde_json::from_str(&page)?);
    }
    Ok(pages)
}

/// A package's name as paths have it.
fn identifier(package: &str) -> String {
    package.replace('-', "_")
}

#[cfg(unix)]
fn write_program(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn write_program(_path: &Path, _text: &str) -> std::io::Result<()> {
    Err(std::io::Error::other(
        "the lists of public items are made on Unix only",
    ))
}

/// The lines that one of two lists has more, each behind the heading `[NAME]` that it stands below, if there is one.
fn difference(listed: &str, found: &str) -> Vec<String> {
    let (listed, found) = (lines(listed), lines(found));
    let gone = listed.difference(&found).map(|line| format!("- {line}"));
    let new = found.difference(&listed).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// The lines of a list, each after its heading.
fn lines(list: &str) -> BTreeSet<String> {
    let mut heading = String::new();
    let mut lines = BTreeSet::new();
    for line in list.lines() {
        let name = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        match name {
            Some(name) => heading = format!("{name}: "),
            None if line.contains("::") => {
                lines.insert(format!("{heading}{line}"));
            }
            None => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_a_library_that_is_gone_is_found() {
        let list = |name: &str| Listed {
            place: Path::new(public::DIRECTORY).join(name),
            text: String::new(),
        };
        let places = ["a.txt", "gone.txt"].map(|name| list(name).place);
        assert_eq!(
            without_library(places.to_vec(), &[list("a.txt"), list("b.txt")]),
            [list("gone.txt").place]
        );
    }

    #[test]
    fn a_difference_names_the_heading_where_there_is_one() {
        let list = |name: &str| format!("# Types\n\n[a]\nx::Same\n{name}\n");
        assert_eq!(
            difference(&list("http::Request"), &list("http::Response")),
            ["- a: http::Request", "+ a: http::Response"]
        );
        assert_eq!(
            difference("fn a::old\n", "# Head\n\nfn a::new\n"),
            ["- fn a::old", "+ fn a::new"]
        );
        assert!(difference(&list("x::Y"), &list("x::Y")).is_empty());
    }
}
