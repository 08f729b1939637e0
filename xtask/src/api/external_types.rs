//! Types and traits of other crates in our public signatures. Such a type makes a new major version of its crate one of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::{Listed, Names, Pages};

/// The checked-in list.
const LIST: &str = "xtask/external-types.txt";

const HEAD: &str = "\
# Types and traits of other crates in public signatures, by library. `cargo xtask public-api` compares, and with
# `--renew` writes this file. A line more makes another crate's major versions ours.
";

/// The checked-in list, and what it has to be, of these libraries.
pub(super) fn list(pages: &Pages, ours: &Names) -> crate::Result<Listed> {
    let mut found = BTreeMap::new();
    for (library, page) in pages {
        found.insert(library.clone(), external(page, ours)?);
    }
    Ok(Listed {
        place: LIST.into(),
        text: render(&found),
    })
}

/// The items of other crates that a library's own public items mention: `http::HeaderMap`, by crate and name. `ours`: crates
/// that do not count, besides the standard library.
fn external(page: &Value, ours: &Names) -> crate::Result<Names> {
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
        let page = serde_json::from_str(PAGE).expect("it is JSON");
        let found = external(&page, &Names::new()).expect("it has an index");
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
        let found = external(&page, &ours).expect("it has an index");
        assert!(!found.contains("http::Request"), "{found:?}");
    }

    #[test]
    fn a_page_without_items_is_an_error() {
        assert!(external(&Value::default(), &Names::new()).is_err());
    }
}
