//! What is said of a run that was made up.

use std::time::Duration;

use super::*;
use crate::case::{CASES, Case};
use crate::contest::{Contestant, Score};
use crate::histogram::Histogram;
use crate::proxies::Kind;

fn score(kind: Kind, values: &[Option<f64>]) -> Score {
    let mut latency = Histogram::new();
    latency.record(Duration::from_micros(150));
    Score {
        contestant: Contestant { kind, workers: 1 },
        values: values.to_vec(),
        throughput: vec![50_000.0],
        latency,
        complaints: Vec::new(),
        missing: (kind == Kind::Caddy).then(|| "X-Forwarded-Host".to_owned()),
        calls: None,
    }
}

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap()
}

fn report() -> Report {
    let outcome = Outcome {
        case: case("get-128"),
        scores: vec![
            score(Kind::Relay, &[Some(10.0), Some(12.0), Some(10.0)]),
            score(Kind::Gateway, &[Some(14.0), Some(18.0), Some(12.0)]),
            score(Kind::Nginx, &[Some(20.0), Some(20.0), Some(20.0)]),
            score(Kind::Haproxy, &[None, Some(20.0), Some(15.0)]),
            score(Kind::Caddy, &[Some(90.0), Some(90.0), Some(90.0)]),
            score(Kind::Envoy, &[None, None, None]),
        ],
    };
    Report {
        date: "2026-01-01".to_owned(),
        machine: "a machine".to_owned(),
        load_average: (0.5, 2.0),
        cores: "proxy on core 0".to_owned(),
        rounds: 3,
        window_millis: 600,
        versions: vec![
            ("relay", "of this program".to_owned()),
            ("nginx", "1.22.1".to_owned()),
        ],
        outcomes: vec![outcome],
        left_out: vec![("pingora".to_owned(), "it is not built".to_owned())],
    }
}

#[test]
fn the_table_has_ratios_of_ours_to_each_and_says_what_is_reached() {
    let text = table(&report().outcomes[0]);
    let line = |name: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(line("nginx").contains("0.70 [0.60..0.90]"), "{text}");
    // The round that was discarded for HAProxy does not count for the pair.
    assert!(line("haproxy").contains("0.85 [0.80..0.90]"), "{text}");
    assert!(line("envoy").contains('–'), "{text}");
    // The better of both is the one against which we look worse.
    assert!(
        text.contains("≤ 0.75 × the best of nginx, haproxy: NOT REACHED, 0.85 × haproxy"),
        "{text}"
    );
    assert!(
        text.contains("≤ 1.15 × relay: NOT REACHED, 1.40 × relay"),
        "{text}"
    );
    assert!(
        text.contains("caddy does less: without X-Forwarded-Host"),
        "{text}"
    );
}

#[test]
fn the_json_has_every_value() {
    let document: serde_json::Value = serde_json::from_str(&json(&report())).unwrap();
    let proxies = &document["cases"][0]["proxies"];
    assert_eq!(proxies[3]["name"], "haproxy");
    assert_eq!(proxies[3]["values"], serde_json::json!([null, 20.0, 15.0]));
    assert_eq!(proxies[2]["ours_to_it"]["median"], 0.7);
    assert_eq!(document["cases"][0]["bounds"][0]["reached"], false);
    assert_eq!(document["left_out"][0]["what"], "pingora");
}

#[test]
fn the_page_takes_the_results_between_its_marks_and_nothing_else() {
    let results = page(&report());
    assert!(
        results.contains("| 128 B GET, 64 connections | 1.40 [1.20..1.50] | 0.70 [0.60..0.90] |"),
        "{results}"
    );
    assert!(
        results.contains("**not reached**: 0.85 × haproxy"),
        "{results}"
    );
    assert!(
        results.contains("Left out: pingora (it is not built)."),
        "{results}"
    );
    let begin = "<!-- results: begin, written by `cargo xtask bench peers --write-docs` -->";
    let old = format!("# Title\n\n{begin}\nold\n<!-- results: end -->\n\nafter\n");
    let new = replace_results(&old, &results).unwrap();
    assert!(
        new.starts_with(&format!("# Title\n\n{begin}\n\n"))
            && new.ends_with("<!-- results: end -->\n\nafter\n")
    );
    assert!(new.contains(&results) && !new.contains("old"));
    // It can be written again.
    assert_eq!(replace_results(&new, &results).unwrap(), new);
    assert!(replace_results("# Title\n", &results).is_err());
}

#[test]
fn the_chart_is_one_file_that_needs_nothing_else() {
    let drawn = chart(&report());
    assert!(drawn.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    for elsewhere in ["href", "url(", "@import", "<script", "<image"] {
        assert!(!drawn.contains(elsewhere), "{elsewhere}");
    }
    assert!(drawn.contains("prefers-color-scheme: dark"));
    let open = drawn.matches("<text").count();
    assert_eq!(open, drawn.matches("</text>").count());
    // Relay, ours, nginx, HAProxy and Caddy; Envoy has no value.
    assert_eq!(drawn.matches("height=\"12\"").count(), 5);
    // The cheapest comes first.
    let at = |name: &str| drawn.find(&format!(">{name}</text>")).unwrap();
    assert!(
        at("relay") < at("gateway") && at("gateway") < at("haproxy") && at("nginx") < at("caddy")
    );
}

#[test]
fn numbers_have_about_three_digits() {
    let found = [0.704, 1.0, 9.99, 9.999, 17.25, 99.99, 1234.5].map(short);
    assert_eq!(
        found,
        ["0.70", "1.00", "9.99", "10.0", "17.2", "100", "1234"]
    );
    let durations = [150, 9_999, 45_613].map(|micros| duration(Duration::from_micros(micros)));
    assert_eq!(durations, ["150 µs", "9999 µs", "45.6 ms"]);
}
