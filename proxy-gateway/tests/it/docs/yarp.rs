//! The page `yarp-settings.md` against YARP's settings and the schema, and YARP's samples, restated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use testkit::body;
use testkit::client::Connection;
use testkit::origin::Origin;

use crate::common::{ConfigFile, address_after, output, start};
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
        |row: &str| row.contains("**no effect**: ") || row.contains("without effect");
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

/// YARP's samples, with names and values of ours. The list has what keeps one from starting, and all warnings: what
/// an application registers in code, the listeners of ASP.NET, HTTP.sys, and settings that weaken a protection.
#[tokio::test]
async fn the_samples_of_yarp_start() {
    let samples: [(&str, &[(&str, &str)]); 8] = [
        ("minimal.json", &[("foreign_section", "/Urls")]),
        (
            "everything.json",
            &[(
                "any_certificate",
                "/ReverseProxy/Clusters/most/HttpClient/DangerousAcceptAnyServerCertificate",
            )],
        ),
        (
            "authorization.json",
            &[
                ("foreign_section", "/Kestrel"),
                (
                    "unknown_authorization_policy",
                    "/ReverseProxy/Routes/named/AuthorizationPolicy",
                ),
                (
                    "unsupported",
                    "/ReverseProxy/Routes/default/AuthorizationPolicy",
                ),
            ],
        ),
        // Its application has code that replaces the placeholder.
        (
            "filter.json",
            &[(
                "invalid_address",
                "/ReverseProxy/Clusters/a/Destinations/a~1one/Address",
            )],
        ),
        ("certificates.json", &[("foreign_section", "/Kestrel")]),
        // Its application has a transform of its own.
        (
            "transforms.json",
            &[("unknown_transform", "/ReverseProxy/Routes/r/Transforms/8")],
        ),
        (
            "delegation.json",
            &[(
                "not_applicable",
                "/ReverseProxy/Clusters/queue/Destinations/local/Metadata/HttpSysDelegationQueue",
            )],
        ),
        (
            "two-sections.json",
            &[
                ("unknown_section", "/ReverseProxy2"),
                (
                    "random_affinity_key",
                    "/ReverseProxy/Clusters/c/SessionAffinity",
                ),
            ],
        ),
    ];
    // They depend on this machine.
    let of_machine = ["unusable_address", "no_trusted_certificates"];
    for (name, expected) in samples {
        let path = data(name).display().to_string();
        let checked = output(&["check", "--format", "json", "--config", &path]).await;
        let verdict: Value = serde_json::from_str(&checked.stdout).expect("it is JSON");
        let problems = verdict["problems"].as_array().expect("it is a list");
        let text =
            |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
        let found: BTreeSet<_> = problems
            .iter()
            .map(|problem| (text(problem, "code"), text(problem, "pointer")))
            .filter(|(code, _)| !of_machine.contains(&code.as_str()))
            .collect();
        let expected = expected
            .iter()
            .map(|(code, at)| ((*code).to_owned(), (*at).to_owned()));
        assert_eq!(found, expected.collect(), "{name}: {verdict:#}");
    }
}

/// The policies that the application of YARP's sample registers in code, as a section of the configuration.
const POLICIES: &str = r#"{
    "Policies": { "Authorization": {
        "Default": { "Basic": { "Realm": "all", "Users": {
            "ann": "$2b$04$qkrbn6vpAWkcZyG9mTSkouxvnWckGj9p9zipKfj.gJxT2RkWITV7q"
        } } },
        "staffOnly": { "Networks": { "Deny": ["127.0.0.0/8"] } }
    } }
}"#;

#[tokio::test]
async fn the_sample_with_policies_runs_when_they_are_defined() {
    let origin = Origin::named("site");
    let policies = ConfigFile::new(POLICIES);
    let machine = ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{ "Clusters": {{ "c": {{ "Destinations": {{ "c/one": {{ "Address": "{}" }} }} }} }} }}
        }}"#,
        origin.url()
    ));
    let sample = data("authorization.json").display().to_string();
    let files = [sample, policies.argument(), machine.argument()];
    let layers: Vec<_> = files.iter().flat_map(|file| ["--config", file]).collect();
    let check = [&["check", "--format", "json"], &*layers].concat();
    let checked = output(&check).await.expect_success();
    let verdict: Value = serde_json::from_str(&checked.stdout).expect("it is JSON");
    let problems = verdict["problems"].as_array().expect("it is a list");
    let codes: Vec<_> = problems.iter().map(|problem| &problem["code"]).collect();
    assert_eq!(codes, ["foreign_section"], "{verdict:#}");

    let run = [&["run"], &*layers].concat();
    let process = start(&run, "a second Ctrl-C stops at once").await;
    let address = address_after(&process.output(), "listening on http://");
    let mut client = Connection::http1(address).await.expect("it listens");
    for (path, status) in [
        ("/default", 401),
        ("/named/x", 403),
        ("/open/x", 200),
        ("/x", 200),
    ] {
        let answer = client.get(path).await.expect("it answers");
        assert_eq!(answer.status, status, "{path}");
    }
}

/// The samples serve, with destinations that exist. What the application of a sample adds in code is left out.
#[tokio::test]
async fn the_samples_of_yarp_serve() {
    let origin = Origin::named("site");
    let machine = ConfigFile::new(
        r#"{ "Listeners": { "web": { "Address": "127.0.0.1:0" } }, "Admin": { "Address": "127.0.0.1:0" } }"#,
    );
    let samples: [(&str, &[&str]); 7] = [
        ("minimal.json", &["/", "/part/x"]),
        ("everything.json", &["/", "/files/x?kind=one"]),
        ("filter.json", &["/api/x", "/x"]),
        ("certificates.json", &["/"]),
        ("transforms.json", &["/"]),
        ("delegation.json", &["/queue/x", "/"]),
        ("two-sections.json", &["/api/x", "/api/p/things/x"]),
    ];
    for (name, paths) in samples {
        let text = std::fs::read_to_string(data(name)).expect("it is there");
        let mut sample: Value = serde_json::from_str(&text).expect("it is JSON");
        let clusters = sample["ReverseProxy"]["Clusters"].as_object_mut();
        for cluster in clusters.expect("there are some").values_mut() {
            let destinations = cluster["Destinations"].as_object_mut();
            for destination in destinations.expect("there are some").values_mut() {
                destination["Address"] = origin.url().into();
            }
        }
        if name == "transforms.json" {
            let transforms = &mut sample["ReverseProxy"]["Routes"]["r"]["Transforms"];
            transforms.as_array_mut().expect("it is a list").remove(8);
        }
        let sample = ConfigFile::new(&sample.to_string());
        let (below, above) = (sample.argument(), machine.argument());
        let run = ["run", "--config", &below, "--config", &above];
        let process = start(&run, "a second Ctrl-C stops at once").await;
        let address = address_after(&process.output(), "listening on http://");
        let mut client = Connection::http1(address).await.expect("it listens");
        for path in paths {
            let request = client
                .request_for("localhost", "GET", path)
                .header("x-kind", "one");
            let request = request.body(body::empty()).expect("it is a request");
            let answer = client.send(request).await.expect("it answers");
            assert_eq!(
                (answer.status.as_u16(), answer.text().as_str()),
                (200, "site"),
                "{name}: {path}"
            );
        }
    }
}
