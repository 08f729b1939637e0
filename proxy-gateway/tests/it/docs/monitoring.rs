//! Tests of `packaging/monitoring`: rules and dashboard against the metrics of a running gateway, and
//! a real Prometheus.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use testkit::client::Connection;
use testkit::peers;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after};
use crate::docs::markdown::code;
use crate::docs::observed::{ask, metrics, observed};
use crate::docs::{page, root};

const FOLDER: &str = "packaging/monitoring";

/// Labels that Prometheus and its histograms add.
const ADDED_LABELS: [&str; 3] = ["instance", "job", "le"];

/// Words of the query language that are no function, metric or label.
const KEYWORDS: [&str; 9] = [
    "and", "bool", "by", "ignoring", "offset", "on", "or", "unless", "without",
];

fn file(name: &str) -> String {
    let path = root().join(FOLDER).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An alert rule.
#[derive(Debug, Default)]
struct Rule {
    name: String,
    query: String,
    severity: String,
}

/// The rules of the file, each of whose keys has a line of its own.
fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for line in file("proxy-gateway.rules.yml").lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            rules.push(Rule {
                name: name.to_owned(),
                ..Rule::default()
            });
        } else if let Some(query) = line.strip_prefix("expr: ") {
            rules.last_mut().expect("it has a name").query = query.to_owned();
        } else if let Some(severity) = line.strip_prefix("labels: { severity: ") {
            let severity = severity.trim_end_matches([' ', '}']);
            rules.last_mut().expect("it has a name").severity = severity.to_owned();
        }
    }
    let is_whole = |rule: &Rule| !rule.query.is_empty() && !rule.severity.is_empty();
    assert!(rules.len() > 10 && rules.iter().all(is_whole), "{rules:?}");
    rules
}

/// The queries of the dashboard: those of its panels, annotations and variables.
fn dashboard_queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("grafana-dashboard.json")).expect("JSON");
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 20, "{queries:?}");
    queries
}

fn collect(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("expr", Value::String(query)) => queries.push(query.clone()),
                    // `label_values(query, label)`
                    ("definition", Value::String(values)) => {
                        let inside = values.strip_prefix("label_values(");
                        let (query, label) = inside
                            .and_then(|inside| inside.strip_suffix(')'))
                            .and_then(|inside| inside.rsplit_once(", "))
                            .unwrap_or_else(|| panic!("{values}"));
                        queries.push(format!("count by ({label}) ({query})"));
                    }
                    _ => collect(value, queries),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, queries)),
        _ => {}
    }
}

/// The metrics and labels that a query names.
fn names(query: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut metrics, mut labels) = (BTreeSet::new(), BTreeSet::new());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_:$".contains(c);
    let (mut in_braces, mut in_list, mut lists_labels) = (false, false, false);
    let mut rest = query;
    while let Some(c) = rest.chars().next() {
        let mut end = 1;
        match c {
            '"' => end = 2 + rest[1..].find('"').expect("the text ends"),
            '{' => in_braces = true,
            '}' => in_braces = false,
            '(' => in_list = std::mem::take(&mut lists_labels),
            ')' => in_list = false,
            _ if is_part(c) => {
                end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                if in_braces || in_list {
                    labels.insert(word);
                } else if KEYWORDS.contains(&word) {
                    lists_labels = ["by", "ignoring", "on", "without"].contains(&word);
                } else if !c.is_ascii_digit() && c != '$' {
                    let after = rest[end..].trim_start();
                    let is_function = after.starts_with('(') || after.starts_with("by ");
                    if !is_function {
                        metrics.insert(word);
                    }
                }
            }
            _ => {}
        }
        rest = &rest[end..];
    }
    (metrics, labels)
}

#[test]
fn names_of_a_query_are_found() {
    let query = r#"sum by (a, le) (rate(x_bucket{b=~"c{d", e!="f"}[$__rate_interval])) > 0.5 and on (g) y == -1 or vector(0)"#;
    let (metrics, labels) = names(query);
    assert_eq!(metrics, BTreeSet::from(["x_bucket", "y"]));
    assert_eq!(labels, BTreeSet::from(["a", "b", "e", "g", "le"]));
}

#[tokio::test]
async fn rules_and_dashboard_name_metrics_and_labels_that_exist() {
    let gateway = observed().await;
    let real = metrics(&ask(gateway.admin, "/metrics").await);
    let rules = rules().into_iter().map(|rule| rule.query);
    let mut wrong = Vec::new();
    for query in rules.chain(dashboard_queries()) {
        let (named, labels) = names(&query);
        assert!(!named.is_empty(), "{query}");
        let mut known: BTreeSet<&str> = ADDED_LABELS.into();
        for name in named {
            let of_histogram = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .and_then(|name| real.get(name))
                .filter(|metric| metric.kind == "histogram");
            match of_histogram.or_else(|| real.get(name)) {
                Some(metric) => known.extend(metric.labels.iter().map(String::as_str)),
                None if name == "up" => {}
                None => wrong.push(format!("no metric `{name}`: {query}")),
            }
        }
        let unknown = labels.difference(&known);
        wrong.extend(unknown.map(|label| format!("no label `{label}`: {query}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_alert_is_explained_and_tried() {
    let page = page("monitoring.md");
    let rows = page.table("Alert rules", "alert").rows.iter();
    let listed: Vec<_> = rows
        .map(|row| (code(&row[0])[0].to_owned(), row[1].clone()))
        .collect();
    let rules = rules().into_iter();
    let rules: Vec<_> = rules.map(|rule| (rule.name, rule.severity)).collect();
    assert_eq!(listed, rules);
    let tests = file("proxy-gateway.rules.test.yml");
    for (name, _) in rules {
        let fires = format!("- alertname: {name}\n        eval_time: 15m\n        exp_alerts:\n");
        assert!(tests.contains(&fires), "no test lets {name} fire");
        let rests = format!("{{ alertname: {name}, eval_time: 15m, exp_alerts: [] }}");
        assert!(tests.contains(&rests), "no test lets {name} rest");
    }
}

/// A request to a query API: its path and parameters.
fn query_path(query: &str) -> String {
    let mut path = "/api/v1/query?query=".to_owned();
    for byte in query.bytes() {
        write!(path, "%{byte:02X}").expect("a text takes everything");
    }
    path
}

#[tokio::test]
async fn a_real_prometheus_takes_the_files_and_answers_the_dashboard() {
    let Some(prometheus) = peers::find("prometheus") else {
        return;
    };
    let gateway = observed().await;
    let folder = ConfigFile::new("{}");
    let config = file("prometheus.yml")
        .replace("127.0.0.1:9901", &gateway.admin.to_string())
        .replace("15s", "200ms");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.folder().join(name), text).expect("the folder is ours");
    };
    write("prometheus.yml", &config);
    for rules in ["proxy-gateway.rules.yml", "xds-control-plane.rules.yml"] {
        write(rules, &file(rules));
    }
    let mut command = prometheus.command();
    command
        .current_dir(folder.folder())
        .arg("--config.file=prometheus.yml")
        .arg("--storage.tsdb.path=data")
        .arg("--web.listen-address=127.0.0.1:0");
    let mut process = peers::spawn(command);
    process.wait_for_output("Server is ready to receive").await;
    let address = address_after(&process.output(), "msg=\"Listening on\" address=");

    // Counters have to grow between two scrapes.
    eventually("a route that fails raises an alert", async || {
        for path in ["/", "/dead"] {
            let mut client = Connection::http1(gateway.proxy).await.expect("it listens");
            client.get(path).await.expect("it answers");
        }
        let alerts = ask(address, "/api/v1/alerts").await;
        alerts.contains(r#""alertname":"RouteFails""#)
    })
    .await;

    let rules: Value = serde_json::from_str(&ask(address, "/api/v1/rules").await).expect("JSON");
    for group in rules["data"]["groups"].as_array().expect("groups") {
        for rule in group["rules"].as_array().expect("rules") {
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }
    let mut empty = Vec::new();
    for query in dashboard_queries() {
        // The interval that Grafana computes from the scrape interval, and filters for everything.
        let filled = query.replace("$__rate_interval", "5m");
        let filled = ["job", "instance", "route", "cluster"]
            .iter()
            .fold(filled, |query, name| {
                query.replace(&format!("${name}"), ".*")
            });
        let answer: Value =
            serde_json::from_str(&ask(address, &query_path(&filled)).await).expect("JSON");
        assert_eq!(answer["status"], "success", "{filled}: {answer}");
        let result = answer["data"]["result"].as_array().expect("a vector");
        if result.is_empty() {
            empty.push(query);
        }
    }
    // The configuration has not changed, so nothing is annotated.
    assert!(
        empty.iter().all(|query| query.starts_with("changes(")),
        "no data for {empty:#?}"
    );
}
