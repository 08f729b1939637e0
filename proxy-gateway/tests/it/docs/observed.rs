//! Tests of the pages' statements about metrics, endpoints and the access log, against a running gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::Value;
use testkit::client::Connection;
use testkit::faults::RefusingPort;
use testkit::origin::{NamedOrigin, Origin};
use testkit::peers::PeerProcess;

use crate::common::{ConfigFile, address_after, start};
use crate::docs::markdown::code;
use crate::docs::page;

/// A gateway that has had requests of all sorts.
pub(super) struct Observed {
    process: PeerProcess,
    pub(super) proxy: SocketAddr,
    pub(super) admin: SocketAddr,
    log: std::path::PathBuf,
    _file: ConfigFile,
    _origin: NamedOrigin,
    _dead: RefusingPort,
}

pub(super) async fn observed() -> Observed {
    let (origin, dead) = (Origin::named("web"), RefusingPort::new());
    let file = ConfigFile::new("{}");
    let log = file.folder().join("access.log");
    file.write(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "Telemetry": {{ "AccessLog": {{ "Format": "json", "File": {log:?} }} }},
            "Policies": {{ "RateLimiter": {{ "Global": {{ "Kind": "Concurrency", "PermitLimit": 1000 }} }} }},
            "ReverseProxy": {{
                "Routes": {{
                    "web": {{ "ClusterId": "web", "Match": {{ "Path": "/{{**rest}}" }} }},
                    "dead": {{ "ClusterId": "dead", "Match": {{ "Path": "/dead" }} }},
                    "closed": {{ "Respond": {{ "Status": 503 }}, "Match": {{ "Path": "/closed" }} }}
                }},
                "Clusters": {{
                    "web": {{ "Destinations": {{ "web-1": {{ "Address": "http://{}/" }} }} }},
                    "dead": {{ "Destinations": {{ "dead-1": {{ "Address": "http://{}/" }} }} }}
                }}
            }}
        }}"#,
        origin.addr(),
        dead.addr(),
    ));
    let arguments = ["run", "--config", &file.argument()];
    let process = start(&arguments, "a second Ctrl-C stops at once").await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    for (path, status) in [("/a?b=c", 200), ("/dead", 502), ("/%00", 400)] {
        let mut client = Connection::http1(proxy).await.expect("it listens");
        let request = client.request("GET", path).header("user-agent", "test");
        let request = request.body(testkit::body::empty());
        let answer = client.send(request.expect("it is a request")).await;
        assert_eq!(answer.expect("it answers").status, status, "{path}");
    }
    Observed {
        process,
        proxy,
        admin,
        log,
        _file: file,
        _origin: origin,
        _dead: dead,
    }
}

pub(super) async fn ask(admin: SocketAddr, path: &str) -> String {
    let mut client = Connection::http1(admin).await.expect("it listens");
    let answer = client.get(path).await.expect("it answers");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

/// The type and labels of a metric.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Metric {
    pub(super) kind: String,
    pub(super) labels: BTreeSet<String>,
}

/// The metrics of a text in the OpenMetrics format, by the name that queries use.
pub(super) fn metrics(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::new();
    for line in text.lines() {
        let declared = line.strip_prefix("# TYPE ");
        if let Some((name, kind)) = declared.and_then(|rest| rest.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let metric = Metric {
                kind: kind.to_owned(),
                ..Metric::default()
            };
            metrics.insert(format!("{name}{suffix}"), metric);
        }
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a sample has a value");
        let (sample, labels) = series.split_once('{').unwrap_or((series, ""));
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| sample.strip_suffix(suffix))
            .unwrap_or(sample);
        let metric: &mut Metric = metrics
            .get_mut(name)
            .unwrap_or_else(|| panic!("{line} has no type"));
        // The values of these labels contain neither quotes nor commas.
        let labels = labels.trim_end_matches('}').split(',');
        let names = labels.filter_map(|label| label.split_once('='));
        let names = names.map(|(name, _)| name.to_owned());
        metric.labels.extend(names.filter(|name| name != "le"));
    }
    metrics
}

#[tokio::test]
async fn metrics_are_those_of_a_gateway_that_runs() {
    let gateway = observed().await;
    let real = metrics(&ask(gateway.admin, "/metrics").await);
    let page = page("operate.md");
    let rows = page.table("Metrics", "metric").rows.iter();
    let listed: BTreeMap<_, _> = rows
        .map(|row| {
            let metric = Metric {
                kind: row[1].clone(),
                labels: code(&row[2]).into_iter().map(str::to_owned).collect(),
            };
            (code(&row[0])[0].to_owned(), metric)
        })
        .collect();
    let names = |map: &BTreeMap<String, Metric>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&listed), names(&real));
    for (name, metric) in &real {
        assert_eq!(&listed[name], metric, "{name}");
    }
    let mut words = 0;
    for word in page
        .text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
    {
        if !["proxy_", "http_", "discovery_"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
        {
            continue;
        }
        words += 1;
        let of_histogram = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| word.strip_suffix(suffix));
        let is_metric = real.contains_key(word)
            || of_histogram
                .and_then(|name| real.get(name))
                .is_some_and(|metric| metric.kind == "histogram");
        let is_label = real.values().any(|metric| metric.labels.contains(word));
        assert!(is_metric || is_label, "`{word}` is no metric");
    }
    assert!(words > real.len());
}

#[tokio::test]
async fn every_endpoint_answers() {
    let gateway = observed().await;
    let page = page("operate.md");
    for row in &page.table("Endpoints", "path").rows {
        let path = code(&row[0])[0]
            .replace("{id}", "web")
            .replace("url=", "url=http://a.example/")
            .replace("header=", "header=Accept:text/plain");
        ask(gateway.admin, &path).await;
    }
}

#[tokio::test]
async fn fields_of_the_access_log_are_those_that_are_written() {
    let mut gateway = observed().await;
    gateway.process.terminate();
    assert!(gateway.process.wait().await.success());
    let text = std::fs::read_to_string(&gateway.log).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    let mut written = BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        written.extend(line.as_object().unwrap().keys().cloned());
    }
    let page = page("run-the-gateway.md");
    let rows = page.table("Logs and the access log", "field").rows.iter();
    let listed: BTreeSet<_> = rows
        .flat_map(|row| code(&row[0]))
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, written);
}
