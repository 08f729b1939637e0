//! Tests of the report of an invented run.

use super::*;
use crate::case::{CASES, Case};
use crate::contest::{Contestant, Latency, Score};
use crate::proxies::Kind;

fn score(kind: Kind, values: &[Option<f64>]) -> Score {
    Score {
        contestant: Contestant { kind, workers: 1 },
        values: values.to_vec(),
        throughput: vec![50_000.0],
        latency: vec![None; values.len()],
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
    // The discarded round of HAProxy does not count for the pair.
    assert!(line("haproxy").contains("0.85 [0.80..0.90]"), "{text}");
    assert!(line("envoy").contains('–'), "{text}");
    // The better of both is the one that makes our gateway look worse.
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
    // A second replacement leaves it as it is.
    assert_eq!(replace_results(&new, &results).unwrap(), new);
    assert!(replace_results("# Title\n", &results).is_err());
}

/// p50 and p99 of each round; a discarded round has neither.
fn latencies(kind: Kind, rounds: &[Option<(f64, f64)>]) -> Score {
    let latency = rounds.iter().map(|round| {
        round.map(|(p50, p99)| Latency {
            p50,
            p90: p50,
            p99,
            p999: p99,
            requests: 100,
        })
    });
    Score {
        latency: latency.collect(),
        ..score(
            kind,
            &rounds
                .iter()
                .map(|round| round.map(|_| 10.0))
                .collect::<Vec<_>>(),
        )
    }
}

fn open_loop(scores: Vec<Score>) -> Outcome {
    let case = case("open-15k");
    Outcome { case, scores }
}

/// Returns, for p50 and p99, the pass flag and the note of the verdict.
fn latency_verdicts(scores: Vec<Score>) -> [(bool, Option<String>); 2] {
    let verdicts = verdict::verdicts(&open_loop(scores));
    ["p50 ≤", "p99 within noise"].map(|bound| {
        let verdict = verdicts
            .iter()
            .find(|verdict| verdict.asked.starts_with(bound));
        let verdict = verdict.unwrap();
        (verdict.reached, verdict.found.clone())
    })
}

#[test]
fn latencies_are_those_of_the_middle_round_whatever_a_disturbed_one_is() {
    let rounds = [(150.0, 400.0), (152.0, 90_000.0), (151.0, 500.0)].map(Some);
    let ours = latencies(Kind::Gateway, &rounds);
    let nginx = latencies(
        Kind::Nginx,
        &[Some((160.0, 800.0)), None, Some((151.0, 250.0))],
    );
    let outcome = open_loop(vec![ours, nginx]);
    let text = table(&outcome);
    assert!(text.contains("151 [150..152]  500 [400..90000]"), "{text}");
    let report = Report {
        outcomes: vec![outcome],
        ..report()
    };
    let text = page(&report);
    for row in [
        "| gateway | 151 µs [150..152] | 500 µs [400..90000] | – | – |  |",
        "| nginx | 156 µs [151..160] | 525 µs [250..800] | 0.97 [0.94..1.00] | 1.25 [0.50..2.00] | 1 of 3 rounds discarded |",
    ] {
        assert!(text.contains(row), "{text}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let nginx = &document["cases"][0]["proxies"][1];
    assert_eq!(nginx["latencies"], 200);
    let p99 = &nginx["latency_microseconds"]["p99"];
    assert_eq!(p99["values"], serde_json::json!([800.0, null, 250.0]));
    assert_eq!(p99["value"]["median"], 525.0);
    assert_eq!(p99["ours_to_it"]["most"], 2.0);
}

#[test]
fn latencies_are_compared_with_the_best_peer_and_not_with_the_floor() {
    let rounds = |p50, p99| [Some((p50, p99)); 3];
    let of = |kind, p50, p99| latencies(kind, &rounds(p50, p99));
    let scores = vec![
        of(Kind::Relay, 100.0, 100.0),
        of(Kind::Gateway, 150.0, 600.0),
        of(Kind::Nginx, 160.0, 500.0),
        of(Kind::Haproxy, 149.0, 900.0),
    ];
    let [p50, p99] = latency_verdicts(scores);
    assert_eq!(p50, (true, Some("1.01 [1.01..1.01] × haproxy".to_owned())));
    assert_eq!(p99, (false, Some("1.20 [1.20..1.20] × nginx".to_owned())));
    let [p50, p99] = latency_verdicts(vec![of(Kind::Gateway, 150.0, 600.0)]);
    assert_eq!((p50, p99), ((false, None), (false, None)));
}

#[test]
fn what_rounds_do_not_agree_on_is_no_difference() {
    let nginx = || latencies(Kind::Nginx, &[Some((100.0, 1000.0)); 5]);
    for (ours, p50_is_reached, p99_is_reached) in [
        // A histogram cannot resolve 1 %, with any number of rounds.
        ([(101.0, 1100.0); 5], true, false),
        ([(103.0, 1100.0); 5], false, false),
        // One contrary round is enough for p99, a quarter of them for p50.
        (
            [
                (100.0, 900.0),
                (103.0, 2000.0),
                (103.0, 2000.0),
                (103.0, 2000.0),
                (103.0, 2000.0),
            ],
            false,
            true,
        ),
        (
            [
                (100.0, 2000.0),
                (99.0, 1000.0),
                (103.0, 2000.0),
                (103.0, 2000.0),
                (103.0, 2000.0),
            ],
            true,
            true,
        ),
    ] {
        let scores = vec![latencies(Kind::Gateway, &ours.map(Some)), nginx()];
        let [p50, p99] = latency_verdicts(scores);
        assert_eq!((p50.0, p99.0), (p50_is_reached, p99_is_reached), "{ours:?}");
    }
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
    // The cheapest is first.
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
    let durations = [
        &[150.0][..],
        &[9_999.0],
        &[45_613.0],
        &[9_000.0, 11_000.0, 5_000.0],
    ]
    .map(|micros| duration(Spread::of(micros.iter().copied()).unwrap()));
    assert_eq!(
        durations,
        ["150 µs", "9999 µs", "45.6 ms", "9000 µs [5000..11000]"]
    );
}
