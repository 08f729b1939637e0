//! Tests of names in the pages: errors, keys that are not honoured, targets, labels.

use std::collections::BTreeSet;
use std::path::Path;

use discovery_core::{
    DiscoverError, DiscoveredService, Discoverer, Discovery, Runner, ServiceOutcome,
};
use proxy_model::config::DestinationConfig;
use proxy_runtime::{Cause, ForwardErrorKind};

use crate::common::{ConfigFile, output};
use crate::docs::keys::is_marked_without_effect;
use crate::docs::markdown::code;
use crate::docs::{page, root};

#[test]
fn every_error_is_explained_and_no_other() {
    let page = page("life-of-a-request.md");
    let kinds: BTreeSet<_> = ForwardErrorKind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .collect();
    let mut explained = BTreeSet::new();
    for table in page
        .tables
        .iter()
        .filter(|table| table.header.iter().any(|h| h == "error"))
    {
        let column = table.column("error");
        for row in &table.rows {
            for name in code(&row[column]) {
                assert!(kinds.contains(name), "`{name}` is no error");
                explained.insert(name.to_owned());
            }
        }
    }
    let (_, unused) = page
        .text
        .split_once("do not occur:")
        .expect("the last paragraph");
    let unused: BTreeSet<_> = code(unused).into_iter().collect();
    for kind in kinds {
        assert!(
            explained.contains(kind) != unused.contains(kind),
            "`{kind}` is to be explained, or to be named as one that does not occur"
        );
    }
    let mut made = BTreeSet::new();
    each_source(&root().join("proxy-runtime/src"), &mut |path, text| {
        // Tests name what does not occur.
        if !path.components().any(|part| part.as_os_str() == "tests") {
            let mentions = text.split("ForwardErrorKind::").skip(1);
            let names = mentions.filter_map(|rest| rest.split(|c: char| !c.is_alphabetic()).next());
            made.extend(names.map(str::to_owned));
        }
    });
    let contradicted: Vec<_> = unused.iter().filter(|kind| made.contains(**kind)).collect();
    assert!(contradicted.is_empty(), "{contradicted:?} may well occur");
}

#[test]
fn the_table_of_causes_is_that_of_the_code() {
    let page = page("troubleshooting.md");
    let rows = page.table("Causes", "cause").rows.iter();
    let listed: Vec<_> = rows
        .map(|row| (code(&row[0])[0].to_owned(), row[1].clone(), row[2].clone()))
        .collect();
    let causes = Cause::ALL.iter().map(|cause| {
        let (name, side) = (cause.as_str().to_owned(), cause.side().as_str().to_owned());
        (name, side, format!("{}.", cause.meaning()))
    });
    assert_eq!(listed, causes.collect::<Vec<_>>());
}

/// A configuration with all parts that this version accepts and does not honour.
const NOT_HONOURED: &str = r#"{ "ReverseProxy": {
    "Routes": { "r": {
        "ClusterId": "c", "Match": { "Path": "/" }
    } },
    "Clusters": { "c": {
        "HttpClient": { "WebProxy": { "Address": "http://proxy.example:3128/", "UseDefaultCredentials": true } },
        "HttpRequest": { "Version": "3" },
        "Destinations": { "d": { "Address": "http://a.example/" } }
    } }
} }"#;

#[tokio::test]
async fn what_is_not_honoured_is_listed_and_marked() {
    let file = ConfigFile::new(NOT_HONOURED);
    let arguments = ["check", "--config", &file.argument(), "--format", "json"];
    let verdict: serde_json::Value =
        serde_json::from_str(&output(&arguments).await.expect_success().stdout).unwrap();
    let mut found = BTreeSet::new();
    for problem in verdict["problems"].as_array().unwrap() {
        // No more than HTTP/3 is left of what YARP has and another system could have.
        let version = "/ReverseProxy/Clusters/c/HttpRequest/Version";
        let code = if problem["pointer"] == version {
            "unsupported"
        } else {
            "not_applicable"
        };
        assert_eq!(problem["code"], code, "{problem}");
        let pointer = problem["pointer"].as_str().unwrap();
        let below = ["/ReverseProxy/Routes/r/", "/ReverseProxy/Clusters/c/"]
            .iter()
            .find_map(|prefix| pointer.strip_prefix(prefix))
            .unwrap();
        found.insert(below.to_owned());
        let at = pointer
            .replace("/Routes/r/", "/Routes/{id}/")
            .replace("/Clusters/c/", "/Clusters/{id}/");
        assert!(
            is_marked_without_effect(&at),
            "{at} is not marked in the tables"
        );
    }
    let page = page("from-yarp.md");
    let table = page
        .tables
        .iter()
        .find(|table| table.header == ["key", "what happens", "why"]);
    let listed = table
        .unwrap()
        .rows
        .iter()
        .map(|row| code(&row[0])[0].to_owned());
    assert_eq!(listed.collect::<BTreeSet<_>>(), found);
}

#[test]
fn every_target_of_the_log_is_listed_and_no_other() {
    let mut used = BTreeSet::new();
    let mut aimless = Vec::new();
    each_package(&mut |path, text| {
        used.extend(targets(text).into_iter().map(str::to_owned));
        let events = events_without_target(text);
        aimless.extend(events.into_iter().map(|event| (path.to_owned(), event)));
    });
    // The page and `LogFilter` know targets, not the modules that an event would be filed under.
    assert!(aimless.is_empty(), "events without a target: {aimless:?}");
    let page = page("operate.md");
    let listed = page.table("Logs", "target").rows.iter();
    let listed: BTreeSet<_> = listed.map(|row| code(&row[0])[0].to_owned()).collect();
    assert_eq!(listed, used);
}

/// Calls `each` with the path and the text of each Rust file of the gateway and the control plane, whatever crate it
/// is in.
fn each_package(each: &mut dyn FnMut(&Path, &str)) {
    /// Other programs, whose lines the page is not about, and what only developers have.
    const OTHERS: [&str; 9] = [
        "azure-loadbalancer",
        "benches",
        "demo",
        "design",
        "examples",
        "fuzz",
        "servicefabric-emulator",
        "testkit",
        "xtask",
    ];
    let mut found = 0;
    for entry in std::fs::read_dir(root()).expect("packages can be listed") {
        let package = entry.expect("packages can be listed").path();
        let name = package.file_name().and_then(|name| name.to_str());
        let is_other = name.is_none_or(|name| OTHERS.contains(&name));
        if !is_other && package.join("Cargo.toml").exists() && package.join("src").is_dir() {
            each_source(&package.join("src"), each);
            found += 1;
        }
    }
    assert!(found >= 12, "only {found} packages were found");
}

/// Returns the beginnings of events that name no target.
fn events_without_target(text: &str) -> Vec<String> {
    let mut events = Vec::new();
    for level in ["trace!(", "debug!(", "info!(", "warn!(", "error!("] {
        for (at, _) in text.match_indices(level) {
            let is_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = text[at + level.len()..].trim_start();
            if !is_word && !rest.starts_with("target:") {
                events.push(level.chars().chain(rest.chars().take(40)).collect());
            }
        }
    }
    events
}

/// Returns the log targets in a source file, literal or as constants.
fn targets(text: &str) -> Vec<&str> {
    let literals = text
        .split("target: \"")
        .skip(1)
        .chain(text.split("const TARGET: &str = \"").skip(1));
    let literals = literals.filter_map(|rest| rest.split('"').next());
    let mut targets: Vec<_> = literals
        .filter(|name| name.contains("::") || *name == "program")
        .collect();
    for rest in text.split("target: targets::").skip(1) {
        let name = rest.split(|c: char| !c.is_ascii_uppercase()).next();
        targets.push(constant(name.unwrap_or_default()));
    }
    targets
}

/// Calls `each` with the path and the text of each Rust file below `directory`.
fn each_source(directory: &Path, each: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(directory).expect("sources can be listed") {
        let path = entry.expect("sources can be listed").path();
        if path.is_dir() {
            each_source(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            each(&path, &text);
        }
    }
}

fn constant(name: &str) -> &'static str {
    match name {
        "REQUEST" => "proxy::request",
        "UPSTREAM" => "proxy::upstream",
        "CONFIG" => "proxy::config",
        "HEALTH" => "proxy::health",
        "SERVER" => "proxy::server",
        "TLS" => "proxy::tls",
        "ACCESS" => "proxy::access",
        other => panic!("a target called {other} is new here"),
    }
}

/// One service with the labels of the page.
struct Labelled(Vec<(String, String)>);

#[async_trait::async_trait]
impl Discoverer for Labelled {
    fn name(&self) -> &str {
        "page"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let destination = DestinationConfig {
            address: "http://10.0.0.7/".to_owned(),
            ..DestinationConfig::default()
        };
        let service =
            DiscoveredService::labelled("orders", self.0.clone(), [("orders-1", destination)]);
        Ok(Discovery::new(vec![service]))
    }
}

#[tokio::test]
async fn the_labels_of_the_page_make_the_route_that_it_names() {
    let page = page("discovery.md");
    let rows = page.table("Labels", "label").rows.iter();
    let labels = rows.map(|row| {
        let value = code(&row[1]);
        (code(&row[0])[0].to_owned(), value[0].to_owned())
    });
    let found = Runner::new(Labelled(labels.collect())).run_once().await;
    let service = &found.report.expect("it answers").services[0];
    assert!(service.problems.is_empty(), "{}", service.problems);
    let ServiceOutcome::Accepted { routes, clusters } = &service.outcome else {
        panic!("{:?}", service.outcome);
    };
    assert_eq!(routes[0].as_str(), "orders:api");
    assert_eq!(clusters[0].as_str(), "orders");
}
