//! Tests of the claims in `docs/xds.md`: its keys, defaults, settings, files and commands.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use testkit::peers;
use tokio::process::Command;
use xds_control_plane::options::Config;
use xds_control_plane::sources::{parse_registry, parse_static};
use xds_control_plane::translate::Defaults;

const PAGE: &str = include_str!("../../../docs/xds.md");
const SCHEMA: &str = include_str!("../../schema/config.json");

/// The blocks of code of a kind, each with the heading that it is under.
fn blocks(kind: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut heading = String::new();
    let mut open: Option<(bool, String)> = None;
    for line in PAGE.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info == kind, String::new())),
            (Some((is_wanted, text)), Some(_)) => {
                if *is_wanted {
                    found.push((heading.clone(), text.clone()));
                }
                open = None;
            }
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {
                if let Some(name) = line.strip_prefix("## ") {
                    name.clone_into(&mut heading);
                }
            }
        }
    }
    found
}

fn block(kind: &str, heading: &str) -> String {
    let mut blocks = blocks(kind).into_iter();
    blocks
        .find(|(under, _)| under == heading)
        .map(|(_, text)| text)
        .expect("the page has it")
}

/// The rows of the table under a heading: what is code in the first two columns.
fn rows(heading: &str) -> Vec<(String, String)> {
    let section = PAGE
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .expect("the page has it");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let plain = |cell: &str| cell.trim_matches('`').to_owned();
        (
            plain(cells[0]),
            plain(cells.get(1).copied().unwrap_or_default()),
        )
    })
    .collect()
}

#[test]
fn every_key_of_the_table_is_one_of_the_schema_with_its_default() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut seen = BTreeSet::new();
    for (key, default) in rows("Configuration") {
        let pointer: String = key
            .split('.')
            .map(|part| format!("/properties/{part}"))
            .collect();
        let property = schema
            .pointer(&pointer)
            .unwrap_or_else(|| panic!("{key} is not in the schema"));
        seen.insert(key.split('.').next().unwrap().to_owned());
        let expected = property.get("default").map(|default| match default {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        assert_eq!(default, expected.unwrap_or_else(|| "–".to_owned()), "{key}");
    }
    let all = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(seen, all, "the table has every section");
}

#[test]
fn the_settings_are_the_built_in_ones() {
    let settings = block("json", "Settings of all clusters");
    assert_eq!(
        Defaults::from_json(settings.as_bytes()),
        Ok((Defaults::default(), Vec::new()))
    );
    let built_in = Defaults::default();
    for (tag, default) in [
        (
            "timeout=<seconds>s",
            format!("{}s", built_in.upstream_timeout.as_secs()),
        ),
        (
            "max_connections=<number>",
            built_in.max_connections.to_string(),
        ),
        (
            "max_pending_requests=<number>",
            built_in.max_pending_requests.to_string(),
        ),
        ("max_requests=<number>", built_in.max_requests.to_string()),
        ("max_retries=<number>", built_in.max_retries.to_string()),
    ] {
        let row = format!("| `envoy.settings.upstream.{tag}` |");
        let line = PAGE
            .lines()
            .find(|line| line.starts_with(&row))
            .unwrap_or_else(|| panic!("{row}"));
        assert!(line.ends_with(&format!("| {default} |")), "{line}");
    }
}

#[test]
fn the_files_are_good_ones() {
    let registry = parse_registry(&block("yaml", "The registry")).unwrap();
    assert_eq!((registry.services.len(), registry.problems.len()), (1, 0));
    let fixed = parse_static(&block("yaml", "The static file")).unwrap();
    assert_eq!((fixed.listeners.len(), fixed.services.len()), (2, 2));
    let example = include_str!("../../examples/control-plane.yaml");
    assert!(Config::parse(example, Path::new("")).is_ok());
}

#[tokio::test]
async fn the_bootstrap_is_one_that_envoy_takes() {
    let Some(envoy) = peers::find("envoy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("envoy.yaml");
    std::fs::write(&path, block("yaml", "Envoy's side")).unwrap();
    let mut command = envoy.command();
    command
        .args([
            "--mode",
            "validate",
            "-l",
            "error",
            "--use-dynamic-base-id",
            "-c",
        ])
        .arg(&path);
    peers::output(command).await.expect_success();
}

/// Each acknowledgement would carry the node with the extensions of its Envoy otherwise: 61 KB.
#[test]
fn bootstraps_of_all_pages_send_the_node_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut seen = 0;
    for page in std::fs::read_dir(folder).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text
            .split("```")
            .filter(|block| block.contains("ads_config:"))
        {
            seen += 1;
            assert!(
                block.contains("set_node_on_first_message_only: true"),
                "{}: {block}",
                path.display()
            );
        }
    }
    assert!(seen >= 2, "{seen} bootstraps");
}

#[tokio::test]
async fn every_option_of_every_command_exists() {
    let mut seen = 0;
    for (_, text) in blocks("sh") {
        for line in text.lines() {
            let arguments = line
                .strip_prefix(
                    "cargo run --release --package xds-control-plane --features program -- ",
                )
                .or_else(|| line.strip_prefix("xds-control-plane "));
            let Some(arguments) = arguments else { continue };
            seen += 1;
            let mut words = arguments.split_whitespace();
            let mut command = Command::new(env!("CARGO_BIN_EXE_xds-control-plane"));
            command
                .args([words.next().unwrap(), "--help"])
                .stdin(std::process::Stdio::null())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            let help = peers::output(command).await.expect_success().stdout;
            for option in words.filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{line}");
            }
        }
    }
    assert!(seen > 3, "only {seen} commands");
}

/// The alert rules, and the page that explains them.
const RULES: &str = include_str!("../../../packaging/monitoring/xds-control-plane.rules.yml");
const RULE_TESTS: &str =
    include_str!("../../../packaging/monitoring/xds-control-plane.rules.test.yml");
const SCALE: &str = include_str!("../../../docs/scale.md");

#[test]
fn every_alert_is_explained_and_tried() {
    let lines = RULES.lines().map(str::trim);
    let alerts: Vec<_> = lines
        .filter_map(|line| line.strip_prefix("- alert: "))
        .collect();
    let rows = SCALE.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<_> = rows
        .filter_map(|row| row.split('`').next())
        .filter(|name| name.starts_with("ControlPlane"))
        .collect();
    assert!(alerts.len() > 4, "{alerts:?}");
    assert_eq!(listed, alerts);
    for alert in alerts {
        let fires = format!("- alertname: {alert}\n");
        assert!(RULE_TESTS.contains(&fires), "no test lets {alert} fire");
    }
}

/// The metrics that the alert rules name.
pub(crate) fn metrics_of_rules() -> BTreeSet<&'static str> {
    let queries = RULES.lines().filter_map(|line| line.split_once("expr: "));
    let words = queries
        .flat_map(|(_, query)| query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with("xds_")).collect()
}
