//! All measurements as JSON, for programs.

use serde_json::{Value, json};

use super::Report;
use super::verdict::verdicts;
use crate::contest::{Latency, Outcome, Score};
use crate::ratio::Spread;

pub(crate) fn json(report: &Report) -> String {
    let versions: serde_json::Map<_, _> = report
        .versions
        .iter()
        .map(|(name, version)| ((*name).to_owned(), json!(version)))
        .collect();
    let left_out: Vec<_> = report
        .left_out
        .iter()
        .map(|(what, why)| json!({ "what": what, "why": why }))
        .collect();
    let document = json!({
        "date": report.date,
        "machine": report.machine,
        "cores": report.cores,
        "load_average": { "before": report.load_average.0, "after": report.load_average.1 },
        "rounds": report.rounds,
        "window_milliseconds": u64::try_from(report.window_millis).unwrap_or(u64::MAX),
        "versions": versions,
        "cases": report.outcomes.iter().map(case).collect::<Vec<_>>(),
        "left_out": left_out,
    });
    format!("{document:#}\n")
}

fn case(outcome: &Outcome) -> Value {
    let bounds = verdicts(outcome).into_iter().map(|verdict| {
        json!({ "asked": verdict.asked, "found": verdict.found, "reached": verdict.reached })
    });
    json!({
        "name": outcome.case.name,
        "title": outcome.case.title,
        "unit": outcome.case.unit(),
        "proxies": outcome.scores.iter().map(|score| proxy(outcome, score)).collect::<Vec<_>>(),
        "bounds": bounds.collect::<Vec<_>>(),
    })
}

fn proxy(outcome: &Outcome, score: &Score) -> Value {
    let micros = |quantile: fn(&Latency) -> f64| {
        let ratios = outcome.latency_ratios_to(score, quantile);
        json!({
            "values": score.latencies(quantile),
            "value": score.latency_spread(quantile).map(spread),
            "ours_to_it": Spread::of(ratios).map(spread),
        })
    };
    json!({
        "name": score.contestant.label(),
        "values": score.values,
        "value": score.spread().map(spread),
        "ours_to_it": outcome.ratio_to(score).map(spread),
        "requests_per_second": Spread::of(score.throughput.iter().copied()).map(spread),
        "latency_microseconds": {
            "p50": micros(|latency| latency.p50),
            "p90": micros(|latency| latency.p90),
            "p99": micros(|latency| latency.p99),
            "p999": micros(|latency| latency.p999),
        },
        "latencies": score.latency.iter().flatten().map(|latency| latency.requests).sum::<u64>(),
        "complaints": score.complaints,
        "does_not_add": score.missing,
        "system_calls_per_request": score.calls.as_ref().map(|calls| calls.0.clone()),
    })
}

fn spread(spread: Spread) -> Value {
    json!({ "median": spread.median, "least": spread.least, "most": spread.most, "rounds": spread.rounds })
}
