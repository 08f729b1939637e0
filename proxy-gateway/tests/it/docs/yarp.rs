//! The page `yarp-settings.md` against YARP's settings and the schema, and YARP's samples, restated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::common::output;
use crate::docs::markdown::{Page, code};
use crate::docs::{page, root, schema};

/// The words in the column `here`.
const WORDS: [&str; 3] = ["supported", "differs", "not applicable"];

fn data(name: &str) -> std::path::PathBuf {
    root().join("proxy-gateway/tests/data/yarp").join(name)
}

/// The keys of the page's tables whose first column has this header, with the other columns. Keys of
/// transforms may have several rows, as `Set` has; the last one is returned.
fn rows(page: &Page, header: &str) -> BTreeMap<String, Vec<String>> {
    let mut rows = BTreeMap::new();
    for table in page.tables.iter().filter(|table| table.header[0] == header) {
        let place = table.place.as_deref();
        let place = place.unwrap_or_else(|| panic!("no place under `{}`", table.heading));
        for row in &table.rows {
            for key in code(&row[0]) {
                let at = format!("{}/{key}", place.trim_end_matches('/'));
                let before = rows.insert(at.clone(), row.clone());
                let is_transform = at.contains("/Transforms/{n}/") && header == "key";
                assert!(before.is_none() || is_transform, "{at} has two rows");
            }
        }
    }
    rows
}

fn section() -> BTreeSet<String> {
    let keys = schema::keys().into_keys();
    keys.filter(|key| key.starts_with("/ReverseProxy/"))
        .collect()
}

#[test]
fn every_setting_of_yarp_has_a_row_and_no_other() {
    let text = std::fs::read_to_string(data("settings.txt")).expect("it is committed");
    let known = text
        .lines()
        .filter(|line| line.starts_with("/ReverseProxy/"));
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    assert!(known.len() > 100);
    let page = page("yarp-settings.md");
    let settings = rows(&page, "setting");
    let written: BTreeSet<String> = settings.keys().cloned().collect();
    let missing: Vec<_> = known.difference(&written).collect();
    let invented: Vec<_> = written.difference(&known).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "missing: {missing:#?}\nnot of YARP: {invented:#?}"
    );

    // The keys that are read here are those of the schema.
    let read = settings
        .iter()
        .filter(|(_, row)| row[1] != "not applicable");
    let mut read: BTreeSet<String> = read.map(|(at, _)| at.clone()).collect();
    read.extend(rows(&page, "key").into_keys());
    let schema = section();
    let missing: Vec<_> = schema.difference(&read).collect();
    let invented: Vec<_> = read.difference(&schema).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "not on the page: {missing:#?}\nnot in the schema: {invented:#?}"
    );
}

#[test]
fn what_is_called_supported_has_an_effect() {
    let reference = page("configuration.md");
    let without_effect =
        |row: &str| row.contains("**not yet**: ") || row.contains("without effect");
    let unfinished: BTreeSet<String> = rows(&reference, "key")
        .into_iter()
        .filter(|(_, row)| without_effect(&row.join(" | ")))
        .map(|(at, _)| at)
        .collect();
    for (at, row) in rows(&page("yarp-settings.md"), "setting") {
        assert!(WORDS.contains(&row[1].as_str()), "{at}: {}", row[1]);
        assert_eq!(row[1] == "supported", row[2] == "–", "{at} says how or why");
        let is_below = |other: &String| at == *other || at.starts_with(&format!("{other}/"));
        assert!(
            row[1] != "supported" || !unfinished.iter().any(is_below),
            "{at} has no effect"
        );
    }
}

/// YARP's samples, with names and values of ours. What keeps one from starting is named in the list.
#[tokio::test]
async fn the_samples_of_yarp_start() {
    let samples: [(&str, &[&str]); 8] = [
        ("minimal.json", &[]),
        ("everything.json", &[]),
        // A policy that an application registers by name.
        (
            "authorization.json",
            &["/ReverseProxy/Routes/named/AuthorizationPolicy"],
        ),
        // Its application has code that replaces the placeholder.
        (
            "filter.json",
            &["/ReverseProxy/Clusters/a/Destinations/a~1one/Address"],
        ),
        ("certificates.json", &[]),
        // Its application has a transform of its own.
        ("transforms.json", &["/ReverseProxy/Routes/r/Transforms/8"]),
        ("delegation.json", &[]),
        ("two-sections.json", &[]),
    ];
    // Missing features, keys that a sample leaves to Data Protection, sections of the application, and this machine.
    let warnings = [
        "unsupported",
        "random_affinity_key",
        "foreign_section",
        "unknown_section",
        "unusable_address",
        "no_trusted_certificates",
        "any_certificate",
    ];
    for (name, expected) in samples {
        let path = data(name).display().to_string();
        let checked = output(&["check", "--format", "json", "--config", &path]).await;
        let verdict: Value = serde_json::from_str(&checked.stdout).expect("it is JSON");
        let problems = verdict["problems"].as_array().expect("it is a list");
        let errors = problems
            .iter()
            .filter(|problem| problem["severity"] == "error");
        let errors: Vec<_> = errors.map(|problem| &problem["pointer"]).collect();
        let is_expected = |error: &&Value| {
            expected.iter().any(|pointer| {
                error
                    .as_str()
                    .is_some_and(|error| error.starts_with(pointer))
            })
        };
        assert!(errors.iter().all(is_expected), "{name}: {verdict:#}");
        for problem in problems.iter().filter(|p| p["severity"] == "warning") {
            let code = problem["code"].as_str().unwrap_or_default();
            assert!(warnings.contains(&code), "{name}: {problem:#}");
        }
    }
}
