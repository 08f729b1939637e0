//! `cargo xtask external-types`: types and traits of other crates in our public signatures, against a checked-in list.
//!
//! Such a type makes a new major version of its crate one of ours. The list is read from what rustdoc writes as JSON, a format
//! that is not stable yet; so only a few of its keys are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::checks::LIMIT;
use crate::process::Invocation;
use crate::say;
use crate::steps::Outcome;
use crate::workspace::Workspace;

/// The checked-in list.
const LIST: &str = "xtask/external-types.txt";

const HEAD: &str = "\
# Types and traits of other crates in public signatures, by library. `cargo xtask external-types` compares, and with
# `--renew` writes this file. A line more makes another crate's major versions ours.
";

/// Names of external items.
type Names = BTreeSet<String>;

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write the list instead of comparing with it
    #[arg(long)]
    renew: bool,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    if options.renew {
        fs::write(LIST, render(&found(&workspace)?))?;
        say!("written: {LIST}");
        return Ok(ExitCode::SUCCESS);
    }
    match step(&workspace)? {
        Outcome::Failed { why, .. } => Err(why.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Compares with the list.
pub(crate) fn step(workspace: &Workspace) -> crate::Result<Outcome> {
    let found = render(&found(workspace)?);
    let listed = fs::read_to_string(LIST)?;
    if found == listed {
        let count = found.lines().filter(|line| line.contains("::")).count();
        return Ok(Outcome::Passed {
            note: Some(format!("{count} types")),
        });
    }
    for line in difference(&listed, &found) {
        say!("{line}");
    }
    Ok(Outcome::Failed {
        why: format!("public signatures do not match {LIST}"),
        repeat: vec![Invocation::cargo("xtask external-types --renew").to_string()],
    })
}

/// The external items of each published library.
fn found(workspace: &Workspace) -> crate::Result<BTreeMap<String, Names>> {
    let target = workspace.target_directory();
    // Set for rustdoc alone: build scripts look at the variable, and everything would be compiled for it once more.
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
    let ours: Names = workspace.package_names().map(identifier).collect();
    let mut found = BTreeMap::new();
    for library in workspace.published_libraries() {
        let page: PathBuf = ["doc", &format!("{}.json", identifier(library))]
            .iter()
            .collect();
        let page = fs::read_to_string(target.join(page))?;
        found.insert(library.to_owned(), external(&page, &ours)?);
    }
    Ok(found)
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
        "the list of external types is made on Unix only",
    ))
}

/// The items of other crates that a library's own public items mention: `http::HeaderMap`, by crate and name. `ours`: crates
/// that do not count, besides the standard library.
fn external(page: &str, ours: &Names) -> crate::Result<Names> {
    let page: Value = serde_json::from_str(page)?;
    let of_this_crate = |item: &&Value| item["crate_id"] == 0;
    let items = page["index"]
        .as_object()
        .ok_or("rustdoc's JSON has no index")?;
    let mut ids = BTreeSet::new();
    for item in items.values().filter(of_this_crate) {
        let implementation = &item["inner"]["impl"];
        // Made by the compiler or by a crate for all types: nobody wrote them in a signature of ours.
        if implementation["is_synthetic"] == true || implementation["blanket_impl"].is_object() {
            continue;
        }
        mentioned(&item["inner"], &mut ids);
    }
    let names = ids.iter().filter_map(|id| {
        let item = &page["paths"][id];
        let path = item["path"].as_array()?;
        let krate = path.first()?.as_str()?;
        let name = path.last()?.as_str()?;
        let counts = item["crate_id"] != 0
            && !["std", "core", "alloc", "proc_macro"].contains(&krate)
            && !ours.contains(krate);
        counts.then(|| format!("{krate}::{name}"))
    });
    Ok(names.collect())
}

/// Adds the numbers of items that are mentioned below `value`: those of objects that hold a path or a source beside them.
fn mentioned(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(id) = fields.get("id").and_then(Value::as_u64)
                && (fields.contains_key("path") || fields.contains_key("source"))
            {
                ids.insert(id.to_string());
            }
            fields.values().for_each(|field| mentioned(field, ids));
        }
        Value::Array(values) => values.iter().for_each(|value| mentioned(value, ids)),
        _ => {}
    }
}

fn render(found: &BTreeMap<String, Names>) -> String {
    let mut text = HEAD.to_owned();
    for (library, names) in found {
        let _ = write!(text, "\n[{library}]\n");
        for name in names {
            let _ = writeln!(text, "{name}");
        }
    }
    text
}

/// The lines that one of two lists has more, below the name of their library.
fn difference(listed: &str, found: &str) -> Vec<String> {
    let (listed, found) = (lines(listed), lines(found));
    let gone = listed.difference(&found).map(|line| format!("- {line}"));
    let new = found.difference(&listed).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// The types of a list, each after its library.
fn lines(list: &str) -> BTreeSet<String> {
    let mut library = "";
    let mut lines = BTreeSet::new();
    for line in list.lines() {
        match line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            Some(name) => library = name,
            None if line.contains("::") => {
                lines.insert(format!("{library}: {line}"));
            }
            None => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"{
        "index": {
            "1": {"crate_id": 0, "inner": {"function": {"sig": {"inputs": [["request", {"resolved_path":
                {"path": "Request", "id": 11, "args": {"angle_bracketed": {"args": [{"type": {"resolved_path":
                {"path": "Bytes", "id": 12, "args": null}}}]}}}}]]}}}},
            "2": {"crate_id": 0, "inner": {"impl": {"is_synthetic": false, "blanket_impl": null,
                "trait": {"path": "Service", "id": 13}}}},
            "3": {"crate_id": 0, "inner": {"impl": {"is_synthetic": false, "blanket_impl": {"generic": "T"},
                "trait": {"path": "WithSubscriber", "id": 14}}}},
            "4": {"crate_id": 0, "inner": {"impl": {"is_synthetic": true, "blanket_impl": null,
                "trait": {"path": "Send", "id": 15}}}},
            "5": {"crate_id": 7, "inner": {"struct": {"path": "Foreign", "id": 14}}},
            "6": {"crate_id": 0, "inner": {"use": {"source": "serde_json::Value", "name": "Value", "id": 16}}}
        },
        "paths": {
            "11": {"crate_id": 3, "path": ["http", "request", "Request"]},
            "12": {"crate_id": 4, "path": ["bytes", "bytes", "Bytes"]},
            "13": {"crate_id": 5, "path": ["tower_service", "Service"]},
            "14": {"crate_id": 6, "path": ["tracing", "WithSubscriber"]},
            "15": {"crate_id": 1, "path": ["core", "marker", "Send"]},
            "16": {"crate_id": 8, "path": ["serde_json", "value", "Value"]}
        }
    }"#;

    #[test]
    fn signatures_implementations_and_reexports_are_read() {
        let found = external(PAGE, &Names::new()).expect("it is JSON");
        let names: Vec<_> = found.iter().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "bytes::Bytes",
                "http::Request",
                "serde_json::Value",
                "tower_service::Service"
            ]
        );
        let ours = Names::from(["http".to_owned()]);
        let found = external(PAGE, &ours).expect("it is JSON");
        assert!(!found.contains("http::Request"), "{found:?}");
    }

    #[test]
    fn a_page_without_items_is_an_error() {
        assert!(external("{}", &Names::new()).is_err());
    }

    #[test]
    fn a_difference_names_the_library() {
        let list = |library: &str, name: &str| {
            render(&BTreeMap::from([(
                library.to_owned(),
                Names::from([name.to_owned()]),
            )]))
        };
        assert_eq!(
            difference(&list("a", "http::Request"), &list("a", "http::Response")),
            ["- a: http::Request", "+ a: http::Response"]
        );
        assert!(difference(&list("a", "x::Y"), &list("a", "x::Y")).is_empty());
    }
}
