//! The part of the documentation that is written from a run.

use std::fmt::Write as _;

use super::table::with_range;
use super::verdict::verdicts;
use super::{Report, duration, short};
use crate::case::Shape;
use crate::contest::{Latency, Outcome};
use crate::load::Pace;
use crate::proxies::Kind;
use crate::ratio::Spread;

const BEGIN: &str = "<!-- results: begin, written by `cargo xtask bench peers --write-docs` -->";
const END: &str = "<!-- results: end -->";

/// Puts results into the page, between its two marks.
pub(crate) fn replace_results(page: &str, results: &str) -> Result<String, String> {
    let parts = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("the page has no `{BEGIN}` … `{END}`"))?;
    Ok(format!("{before}{BEGIN}\n\n{results}\n{END}{after}"))
}

/// The results as Markdown.
pub(crate) fn page(report: &Report) -> String {
    let mut text = String::new();
    let (before, after) = report.load_average;
    let _ = writeln!(
        text,
        "{}; {};\n{}.\n{} rounds of {} ms each. Load average {before:.1} before the run and {after:.1} after it, of which one or two are the\n\
         measurement's own; the rest was other work on the machine.\n",
        report.date, report.machine, report.cores, report.rounds, report.window_millis
    );
    let _ = writeln!(
        text,
        "What our gateway needs, in multiples of what the other needs (median of paired ratios, [least..most]):\n"
    );
    ratios(&mut text, report);
    let _ = writeln!(
        text,
        "\nOur gateway itself, and the bounds that it is to reach:\n"
    );
    bounds(&mut text, report);
    open_loops(&mut text, report);
    calls(&mut text, report);
    versions(&mut text, report);
    text
}

fn ratios(text: &mut String, report: &Report) {
    let compared: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| *kind != Kind::Gateway)
        .filter(|kind| {
            report
                .outcomes
                .iter()
                .any(|outcome| outcome.score(*kind).is_some())
        })
        .collect();
    let _ = write!(text, "| |");
    for kind in &compared {
        let _ = write!(text, " ÷ {} |", kind.name());
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(compared.len()));
    for outcome in report
        .outcomes
        .iter()
        .filter(|outcome| !is_scaling(outcome))
    {
        let _ = write!(text, "| {} |", outcome.case.title);
        for kind in &compared {
            let ratio = outcome
                .score(*kind)
                .and_then(|score| outcome.ratio_to(score));
            let _ = match ratio {
                Some(ratio) => write!(text, " {} |", with_range(ratio)),
                None => write!(text, " – |"),
            };
        }
        text.push('\n');
    }
}

fn bounds(text: &mut String, report: &Report) {
    text.push_str("| | measured | requests a second | bound | |\n|---|---|---|---|---|\n");
    for outcome in &report.outcomes {
        let Some(ours) = outcome.score(Kind::Gateway) else {
            continue;
        };
        let value = ours.spread().map_or_else(
            || "–".to_owned(),
            |spread| format!("{} {}", short(spread.median), unit(outcome)),
        );
        let rate = Spread::of(ours.throughput.iter().copied())
            .map_or_else(|| "–".to_owned(), |rate| format!("{:.0}", rate.median));
        let verdicts = verdicts(outcome);
        let asked: Vec<_> = verdicts
            .iter()
            .map(|verdict| verdict.asked.clone())
            .collect();
        let found = verdicts
            .iter()
            .map(|verdict| match (&verdict.found, verdict.reached) {
                (None, _) => "not compared".to_owned(),
                (Some(found), true) => format!("reached: {found}"),
                (Some(found), false) => format!("**not reached**: {found}"),
            });
        let found: Vec<_> = found.collect();
        let _ = writeln!(
            text,
            "| {} | {value} | {rate} | {} | {} |",
            outcome.case.title,
            asked.join("<br>"),
            found.join("<br>")
        );
    }
}

/// Latencies say something only where the load does not wait for answers.
fn open_loops(text: &mut String, report: &Report) {
    let open = |outcome: &&Outcome| {
        matches!(
            outcome.case.shape,
            Shape::Load {
                pace: Pace::Open(_),
                ..
            }
        )
    };
    for outcome in report.outcomes.iter().filter(open) {
        let _ = writeln!(
            text,
            "\nLatency, {}, counted from the instant at which each request was due (median over rounds, [least..most]; ours in\n\
             multiples of the other's, median of paired ratios):\n",
            outcome.case.title
        );
        text.push_str(
            "| | p50 | p99 | ours ÷ it, p50 | ours ÷ it, p99 | |\n|---|---|---|---|---|---|\n",
        );
        for score in &outcome.scores {
            let nothing = || "–".to_owned();
            let micros = |quantile: fn(&Latency) -> f64| {
                let spread = score.latency_spread(quantile);
                spread.map_or_else(nothing, duration)
            };
            let ratio = |quantile: fn(&Latency) -> f64| match score.contestant.kind {
                Kind::Gateway => nothing(),
                _ => Spread::of(outcome.latency_ratios_to(score, quantile))
                    .map_or_else(nothing, with_range),
            };
            let discarded = score.values.iter().filter(|value| value.is_none()).count();
            let remark = match discarded {
                0 => String::new(),
                _ => format!("{discarded} of {} rounds discarded", score.values.len()),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {remark} |",
                score.contestant.label(),
                micros(|latency| latency.p50),
                micros(|latency| latency.p99),
                ratio(|latency| latency.p50),
                ratio(|latency| latency.p99)
            );
        }
    }
}

fn calls(text: &mut String, report: &Report) {
    for outcome in &report.outcomes {
        let counted: Vec<_> = outcome
            .scores
            .iter()
            .filter_map(|score| Some((score, score.calls.as_ref()?)))
            .collect();
        if counted.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\nSystem calls per request, {}:\n\n| | all | in vain |\n|---|---|---|",
            outcome.case.title
        );
        for (score, calls) in counted {
            let _ = writeln!(
                text,
                "| {} | {:.2} | {:.2} |",
                score.contestant.label(),
                calls.total(),
                calls.failed()
            );
        }
    }
}

fn versions(text: &mut String, report: &Report) {
    let versions: Vec<_> = report
        .versions
        .iter()
        .filter(|(name, _)| *name != Kind::Relay.name())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let _ = writeln!(text, "\nVersions: {}.", versions.join(", "));
    for (what, why) in &report.left_out {
        let _ = writeln!(text, "Left out: {what} ({why}).");
    }
}

fn unit(outcome: &Outcome) -> &'static str {
    match outcome.case.shape {
        Shape::Idle { .. } => "KiB",
        _ => "µs",
    }
}

fn is_scaling(outcome: &Outcome) -> bool {
    matches!(outcome.case.shape, Shape::Workers { .. })
}
