//! The chart: the cost of each proxy in multiples of our gateway's.

use std::fmt::Write as _;

use super::{Report, short};
use crate::case::Shape;
use crate::contest::Outcome;
use crate::proxies::Kind;
use crate::ratio::Spread;

const MARGIN: f64 = 16.0;
/// Number of panels side by side.
const COLUMNS: usize = 2;
const COLUMN: f64 = 440.0;
/// X position of the bars in a column, after the names.
const BARS: f64 = 130.0;
/// Longest bar. Longer ones are cut; their number shows the value.
const MOST: f64 = 4.5;
const SCALE: f64 = 52.0;
const ROW: f64 = 19.0;
const GAP: f64 = 34.0;

/// Colours for light and dark pages, on a background rectangle, since a page may be dark on a light
/// system. It refers to no external font, script or picture.
const STYLE: &str = "\
    text { font: 12px system-ui, sans-serif; fill: #24292f }\n\
    .page { fill: #ffffff }\n\
    .title { font-weight: 600; font-size: 13px }\n\
    .quiet { fill: #57606a }\n\
    .bar { fill: #8c959f }\n\
    .ours { fill: #0969da }\n\
    .range { stroke: #24292f; stroke-width: 1 }\n\
    .one { stroke: #0969da; stroke-width: 1; stroke-dasharray: 3 3 }\n\
    @media (prefers-color-scheme: dark) {\n\
      text { fill: #e6edf3 }\n\
      .page { fill: #0d1117 }\n\
      .quiet { fill: #9198a1 }\n\
      .bar { fill: #6e7681 }\n\
      .ours { fill: #4493f8 }\n\
      .range { stroke: #e6edf3 }\n\
      .one { stroke: #4493f8 }\n\
    }\n";

/// Renders a standalone SVG with a panel for each case with several measured proxies.
pub(crate) fn chart(report: &Report) -> String {
    let mut body = String::new();
    let title =
        "Processor time per request (memory where idle), proxy-gateway = 1; shorter is cheaper";
    let remark = "median of paired ratios; the line is the range over all rounds";
    let mut y = MARGIN + 12.0;
    text(&mut body, MARGIN, y, "title", title);
    y += 18.0;
    text(&mut body, MARGIN, y, "quiet", remark);
    let outcomes = report.outcomes.iter();
    let panels: Vec<_> = outcomes
        .filter(|outcome| !matches!(outcome.case.shape, Shape::Workers { .. }))
        .map(|outcome| (outcome.case.title, rows(outcome)))
        .filter(|(_, rows)| rows.len() > 1)
        .collect();
    for side_by_side in panels.chunks(COLUMNS) {
        y += GAP;
        let mut x = MARGIN;
        let mut lowest = y;
        for (title, rows) in side_by_side {
            lowest = lowest.max(panel(&mut body, x, y, title, rows));
            x += COLUMN;
        }
        y = lowest;
    }
    #[expect(clippy::cast_precision_loss, reason = "there are two columns")]
    let width = MARGIN + COLUMN * COLUMNS as f64;
    let height = y + MARGIN + 8.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"What each proxy needs in multiples of proxy-gateway\">\n<style>\n{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n{body}</svg>\n"
    )
}

/// Draws a case. Returns the y position of its end.
fn panel(body: &mut String, x: f64, y: f64, title: &str, rows: &[(Kind, Spread)]) -> f64 {
    text(body, x, y, "title", title);
    let top = y + 6.0;
    let mut y = y;
    for (kind, spread) in rows {
        y += ROW;
        bar(body, x, y, *kind, *spread);
    }
    let one = x + BARS + SCALE;
    let bottom = y + 5.0;
    let _ = writeln!(
        body,
        "<line class=\"one\" x1=\"{one}\" x2=\"{one}\" y1=\"{top}\" y2=\"{bottom}\"/>"
    );
    y
}

/// The cost of each proxy in multiples of ours, the cheapest first.
fn rows(outcome: &Outcome) -> Vec<(Kind, Spread)> {
    let Some(ours) = outcome.score(Kind::Gateway) else {
        return Vec::new();
    };
    let mut rows: Vec<_> = outcome
        .scores
        .iter()
        .filter_map(|score| {
            Some((
                score.contestant.kind,
                Spread::of_ratios(&score.values, &ours.values)?,
            ))
        })
        .collect();
    rows.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    rows
}

fn bar(body: &mut String, x: f64, y: f64, kind: Kind, spread: Spread) {
    let length = |value: f64| value.min(MOST) * SCALE;
    let class = if kind == Kind::Gateway { "ours" } else { "bar" };
    let bars = x + BARS;
    text(body, x, y, "", kind.name());
    let _ = writeln!(
        body,
        "<rect class=\"{class}\" x=\"{bars}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" rx=\"2\"/>",
        y - 10.0,
        length(spread.median)
    );
    let (least, most) = (bars + length(spread.least), bars + length(spread.most));
    if kind != Kind::Gateway && spread.rounds > 1 {
        let middle = y - 4.0;
        let _ = writeln!(
            body,
            "<line class=\"range\" x1=\"{least:.1}\" x2=\"{most:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>"
        );
    }
    let mut label = short(spread.median);
    if spread.median > MOST {
        label.push_str(" →");
    }
    text(
        body,
        bars + length(spread.median.max(spread.most)) + 6.0,
        y,
        "quiet",
        &label,
    );
}

fn text(body: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        body,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    );
}
