//! The defaults in the tables against those in the code.

use std::collections::BTreeMap;
use std::fmt::Debug;

use discovery_core::RunnerOptions;
use discovery_core::merge::MergeOptions;
use discovery_core::providers::file::FileOptions;
use discovery_core::runner::ConfirmRemoval;
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{DataRate, Http2Limits, Limits};
use proxy_runtime::upstream::UpstreamOptions;

use crate::docs::markdown::{Page, Table};
use crate::docs::page;

/// Compares a table of options, whose second column is the default, with a value of the options' type.
fn compare(table: &Table, options: &impl Debug) {
    let column = table.column("default");
    let written: BTreeMap<_, _> = table
        .rows
        .iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), row[column].clone()))
        .collect();
    let real = fields(options);
    let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&written), names(&real), "under `{}`", table.heading);
    for (name, value) in real {
        let said = &written[&name];
        assert!(agree(said, &value), "`{name}` is {value}, not {said}");
    }
}

/// The fields of a struct with their values, as `Debug` shows them.
fn fields(options: &impl Debug) -> BTreeMap<String, String> {
    // On one line, so that optional values look like plain ones.
    let shown = format!("{options:#?}").replace("Some(\n        ", "Some(");
    let outermost = shown.lines().filter_map(|line| line.strip_prefix("    "));
    outermost
        .filter(|line| line.starts_with(|c: char| c.is_alphabetic()))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| {
            let value = value.trim_start_matches("Some(").trim_end_matches(',');
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Returns true if a default in a page equals the value that `Debug` shows.
fn agree(said: &str, real: &str) -> bool {
    // An unset or compound value is described in words.
    if real == "None" || real.ends_with(['(', '{']) {
        return number(said).is_none();
    }
    match (number(said), number(real)) {
        (Some(said), Some(real)) => (said - real).abs() < 1e-9,
        (None, None) => plain(said) == plain(real),
        _ => false,
    }
}

fn plain(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.collect::<String>().to_lowercase()
}

/// A number with its unit, in seconds or bytes: `10 s`, `32 KiB`, `10 000`, `250ms`.
fn number(text: &str) -> Option<f64> {
    let text: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '`')
        .collect();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * factor)
}

fn nth<'a>(page: &'a Page, heading: &str, first: &str, n: usize) -> &'a Table {
    let tables = page.tables.iter();
    let mut found = tables.filter(|table| table.heading == heading && table.header[0] == first);
    found.nth(n).expect("the table is there")
}

/// The table of the keys at `place`.
fn at<'a>(page: &'a Page, place: &str) -> &'a Table {
    let mut tables = page.tables.iter();
    let table = tables.find(|table| table.place.as_deref() == Some(place));
    table.unwrap_or_else(|| panic!("no table for {place}"))
}

#[test]
fn numbers_are_understood() {
    assert!(agree("32 KiB", "32768") && agree("1 h", "3600s") && agree("250 ms", "250ms"));
    assert!(agree("30 min", "1800s") && !agree("30 min", "30s"));
    assert!(agree("10 000", "10000") && agree("all or nothing", "AllOrNothing"));
    assert!(agree("none", "None") && agree("40 % of the open files", "None"));
    assert!(!agree("10 s", "11s") && !agree("10 s", "None") && !agree("false", "true"));
}

#[test]
fn limits_are_those_of_the_server_and_of_connections_to_destinations() {
    let page = page("operate.md");
    compare(nth(&page, "Limits", "limit", 0), &Limits::default());
    compare(nth(&page, "Limits", "limit", 1), &Http2Limits::default());
    compare(
        nth(&page, "Limits", "limit", 2),
        &UpstreamOptions::default(),
    );

    let rate = DataRate::default();
    let said = format!(
        "{} B/s over {} s",
        rate.bytes_per_second,
        rate.window.as_secs()
    );
    let limits = nth(&page, "Limits", "limit", 0);
    let row = limits
        .rows
        .iter()
        .find(|row| row[0] == "`data_rate`")
        .unwrap();
    assert_eq!(row[1], said);
}

/// The limits of the tables are all that there are, and so each can be set.
#[test]
fn every_limit_has_a_key_of_its_name_and_its_default() {
    let (operate, configuration) = (page("operate.md"), page("configuration.md"));
    for (n, place) in [(0, "Server.Limits"), (1, "Server.Limits.Http2")] {
        let limits = nth(&operate, "Limits", "limit", n);
        let keys = at(&configuration, &format!("/{}", place.replace('.', "/")));
        let column = limits.column(&format!("key in `{place}`"));
        for row in &limits.rows {
            let name = &row[column];
            assert_eq!(plain(name), plain(&row[0]));
            let key = keys.rows.iter().find(|other| other[0] == *name);
            let key = key.unwrap_or_else(|| panic!("{name} is no key in {place}"));
            let same = match (number(&row[1]), number(&key[2])) {
                (Some(one), Some(other)) => one == other,
                (one, other) => one.is_none() && other.is_none(),
            };
            assert!(same, "{}: {} and {}", row[0], row[1], key[2]);
        }
        assert_eq!(limits.rows.len(), keys.rows.len(), "each key is a limit");
    }
    let rate = at(&configuration, "/Server/Limits/DataRate");
    let (switch, rate) = rate.rows.split_first().unwrap();
    assert_eq!(switch[..3], ["`Enabled`", "boolean", "true"]);
    let real = fields(&DataRate::default());
    assert_eq!(rate.len(), real.len());
    for row in rate {
        let (_, real) = real
            .iter()
            .find(|(name, _)| plain(name) == plain(&row[0]))
            .unwrap();
        assert!(agree(&row[2], real), "{} is {real}, not {}", row[0], row[2]);
    }
}

#[test]
fn settings_of_discovery_are_those_of_the_code() {
    let page = page("discovery.md");
    compare(
        nth(&page, "Settings", "option", 0),
        &RunnerOptions::default(),
    );
    compare(
        nth(&page, "Settings", "option", 1),
        &ConfirmRemoval::default(),
    );
    compare(
        nth(&page, "Settings", "option", 2),
        &MergeOptions::default(),
    );
    compare(nth(&page, "Settings", "option", 3), &FileOptions::default());
}

#[test]
fn what_a_cluster_does_unless_it_says_otherwise_is_in_the_tables() {
    let config = ProxyConfig::from_json(
        r#"{ "Clusters": { "c": {
            "HealthCheck": { "Active": { "Enabled": true }, "Passive": { "Enabled": true } },
            "Destinations": { "d": { "Address": "http://a.example/" } }
        } } }"#,
    )
    .unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let cluster = &snapshot.clusters()[0];
    let destination = &cluster.destinations()[0];
    let active = cluster.active_check().unwrap();
    let passive = cluster.passive_check().unwrap();
    let upstream = cluster.upstream();
    let page = page("configuration.md");
    let said = |place: &str, key: &str| {
        let place = format!("/ReverseProxy/Clusters/{{id}}{place}");
        let row = at(&page, &place)
            .rows
            .iter()
            .find(|row| row[0] == format!("`{key}`"));
        row.unwrap_or_else(|| panic!("no row `{key}`"))[2].clone()
    };
    for (place, key, real) in [
        (
            "/HealthCheck/Active",
            "Interval",
            format!("{:?}", active.interval()),
        ),
        (
            "/HealthCheck/Active",
            "Timeout",
            format!("{:?}", active.timeout()),
        ),
        ("/HealthCheck/Active", "Policy", active.policy().to_owned()),
        (
            "/HealthCheck/Passive",
            "ReactivationPeriod",
            format!("{:?}", passive.reactivation()),
        ),
        (
            "/HealthCheck/Passive",
            "Policy",
            passive.policy().to_owned(),
        ),
        (
            "/HealthCheck",
            "AvailableDestinationsPolicy",
            cluster.availability().name().to_owned(),
        ),
        (
            "/HttpRequest",
            "ActivityTimeout",
            format!("{:?}", upstream.activity_timeout()),
        ),
        (
            "/HttpRequest",
            "VersionPolicy",
            format!("{:?}", upstream.version_policy()),
        ),
        (
            "/HttpClient",
            "EnableMultipleHttp2Connections",
            upstream.multiple_http2_connections().to_string(),
        ),
        (
            "/Destinations/{id}",
            "Weight",
            destination.weight().to_string(),
        ),
        (
            "/Destinations/{id}",
            "Priority",
            destination.priority().to_string(),
        ),
    ] {
        let said = said(place, key);
        assert!(agree(&said, &real), "{place}/{key} is {real}, not {said}");
    }
    assert_eq!(active.threshold(), 2.0, "the table of clusters says 2");
}
