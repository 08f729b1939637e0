//! The tables of `configuration.md` against the schema.

use std::collections::{BTreeMap, BTreeSet};

use crate::docs::markdown::{Page, code};
use crate::docs::{page, schema};

/// A row of a table, without the key.
struct Row {
    kind: Option<String>,
    text: String,
}

/// Rows by place and key.
fn rows(page: &Page) -> BTreeMap<String, Vec<Row>> {
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for table in &page.tables {
        if table.header[0] != "key" {
            continue;
        }
        let place = table.place.as_deref();
        let place = place.unwrap_or_else(|| panic!("no place under `{}`", table.heading));
        let kind = table.header.iter().position(|header| header == "type");
        for row in &table.rows {
            let keys = code(&row[0]);
            assert!(!keys.is_empty(), "no key in {row:?}");
            for key in keys {
                let at = format!("{}/{key}", place.trim_end_matches('/'));
                rows.entry(at).or_default().push(Row {
                    kind: kind.map(|column| row[column].clone()),
                    text: row.join(" | "),
                });
            }
        }
    }
    rows
}

#[test]
fn every_key_of_the_schema_is_in_a_table_and_no_other() {
    let written = rows(&page("configuration.md"));
    let written: BTreeSet<_> = written.keys().cloned().collect();
    let known: BTreeSet<_> = schema::keys().into_keys().collect();
    let missing: Vec<_> = known.difference(&written).collect();
    let invented: Vec<_> = written.difference(&known).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "missing: {missing:#?}\nnot in the schema: {invented:#?}"
    );
}

#[test]
fn no_key_but_those_of_transforms_is_explained_twice() {
    for (at, rows) in rows(&page("configuration.md")) {
        assert!(
            rows.len() == 1 || at.contains("/Transforms/"),
            "{at} has {} rows",
            rows.len()
        );
    }
}

#[test]
fn types_choices_and_extensions_are_those_of_the_schema() {
    let keys = schema::keys();
    let mut wrong = Vec::new();
    for (at, rows) in rows(&page("configuration.md")) {
        let Some(key) = keys.get(&at) else {
            continue;
        };
        for row in rows {
            if let Some(kind) = &row.kind {
                // The program's own sections write lengths of time as texts.
                let same = kind == key.kind || (kind == "time" && key.kind == "text");
                if !same {
                    wrong.push(format!("{at} is a {}, not a {kind}", key.kind));
                }
            }
            for choice in &key.choices {
                if !code(&row.text).contains(&choice.as_str()) {
                    wrong.push(format!("{at} may be `{choice}`, which is not said"));
                }
            }
            let is_ours = key.description.starts_with("Extension:");
            if at.starts_with("/ReverseProxy/") && row.text.contains("**ours**") != is_ours {
                wrong.push(format!("{at}: is it ours?"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn ranges_of_the_programs_own_numbers_are_those_of_the_schema() {
    let rows = rows(&page("configuration.md"));
    let keys = schema::keys();
    let ours = keys
        .iter()
        .filter(|(at, _)| !at.starts_with("/ReverseProxy/"));
    let ranges: Vec<_> = ours
        .filter_map(|(at, key)| Some((at, key.range?)))
        .collect();
    assert!(ranges.len() > 15, "only {ranges:?}: the schema has more");
    for (at, (least, most)) in ranges {
        let said = &rows[at][0].text;
        let range = format!("{least} to {most}");
        assert!(said.contains(&range), "{at} may be {range}, not {said}");
    }
}

/// Returns true if the tables mark a key as not honoured.
pub(crate) fn is_marked_without_effect(at: &str) -> bool {
    let rows = rows(&page("configuration.md"));
    let rows = rows
        .get(at)
        .unwrap_or_else(|| panic!("{at} is in no table"));
    rows.iter().any(|row| row.text.contains("**no effect**"))
}
