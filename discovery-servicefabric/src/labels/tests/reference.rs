//! The page with all labels is kept true.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/servicefabric-labels.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The labels in the first column of the tables, one by one: `A.{B, C}` are two.
fn documented() -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for line in page().lines() {
        let Some(cell) = line.strip_prefix("| `YARP.") else {
            continue;
        };
        let (label, _) = cell.split_once('`').expect("the cell ends");
        match label.split_once('{') {
            None => {
                labels.insert(label.to_owned());
            }
            Some((before, rest)) => {
                let names = rest.strip_suffix('}').expect("the braces end the label");
                labels.extend(names.split(", ").map(|name| format!("{before}{name}")));
            }
        }
    }
    labels
}

/// A label as the page writes it, without the prefix.
fn generalised(key: &str) -> String {
    let parts: Vec<&str> = key.split('.').skip(1).collect();
    let mut general = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let is_route = i == 1 && parts[0] == "Routes";
        let after = |list: &str| i > 0 && parts[i - 1].starts_with('[') && parts[i - 2] == list;
        if is_route {
            general.push("<name>");
        } else if i > 0 && parts[i - 1] == "Metadata" || after("Transforms") {
            general.push("<key>");
            break;
        } else if part.starts_with('[') {
            general.push("[n]");
        } else {
            general.push(part);
        }
    }
    general.join(".")
}

#[test]
fn every_label_on_the_page_is_understood() {
    let labels = documented();
    assert!(labels.len() > 80, "only {} labels found", labels.len());
    for label in labels {
        let key = label
            .replace("<name>", "r")
            .replace("[n]", "[0]")
            .replace("<key>", "PathPrefix");
        let key = format!("YARP.{key}");
        let parsed = parse(&web(&[(&key, "x")]));
        let unknown = parsed.problems.iter().find(|p| p.code == "unknown_label");
        assert_eq!(unknown, None, "{key}");
        // So that this is no test that cannot fail: next to it is nothing.
        let slip = format!("{key}x");
        let told = parse(&web(&[(&slip, "x")]));
        let unknown = told.problems.iter().any(|p| p.code == "unknown_label");
        assert_eq!(unknown, !label.ends_with("<key>"), "{slip}");
    }
}

#[test]
fn every_label_of_the_tests_is_on_the_page() {
    let documented = documented();
    let sources = [
        include_str!("table.rs"),
        include_str!("cases.rs"),
        include_str!("listeners.rs"),
        include_str!("options.rs"),
        include_str!("partitions.rs"),
        include_str!("roles.rs"),
    ];
    // Wrong on purpose, or known under another spelling.
    const OTHERS: [&str; 2] = ["Enabled", "Routes.<name>"];
    let mut seen = 0;
    for literal in sources
        .iter()
        .flat_map(|source| source.split('"').skip(1).step_by(2))
    {
        let is_label = |c: char| c.is_ascii_alphanumeric() || "._-[]".contains(c);
        let Some(prefix) = literal.get(..5) else {
            continue;
        };
        if !prefix.eq_ignore_ascii_case("YARP.") || !literal.chars().all(is_label) {
            continue;
        }
        let label = generalised(literal).replace("Healthcheck", "HealthCheck");
        let is_known = documented.contains(&label) || OTHERS.contains(&label.as_str());
        assert!(is_known, "{literal} ({label}) is not on the page");
        seen += 1;
    }
    assert!(seen > 100, "only {seen} labels found");
}

#[test]
fn every_example_on_the_page_serves() {
    let page = page();
    let blocks = page.split("```text\n").skip(1);
    let mut seen = 0;
    for block in blocks {
        let (block, _) = block.split_once("```").expect("the block ends");
        let labels: Vec<(&str, &str)> = block
            .lines()
            .map(|line| line.split_once(" = ").unwrap_or_else(|| panic!("{line}")))
            .collect();
        assert_eq!(labels[0], ("YARP.Enable", "true"));
        let address = r#"{"Endpoints":{"web":"https://10.0.0.1","admin":"https://10.0.0.1:8443"}}"#;
        let primary = |id| Replica {
            replica_role: ReplicaRole::Primary,
            ..replica(id, address)
        };
        let partitions = vec![
            range("p1", i64::MIN, -1, vec![primary(1)]),
            range("p2", 0, i64::MAX, vec![primary(2)]),
        ];
        let described = service(ServiceKind::Stateful, &labels[1..], partitions);
        let config = good(&YarpLabels::default(), &described);
        assert!(!config.routes.is_empty(), "{block}");
        seen += 1;
    }
    assert_eq!(seen, 5);
}
