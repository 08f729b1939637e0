//! Spans of polls of sources.

use std::sync::Arc;
use std::time::SystemTime;

use discovery_core::FinishedCycle;
use tokio::sync::watch;

use super::request::random;
use super::{Decision, SpanKind, SpanValue, TraceSpan, Tracer};

/// Passes a span of each poll of a source to the tracer, as a trace of its own. `cycles`: a source of
/// [`Merged::cycles`](discovery_core::Merged::cycles). Ends with the source.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn trace_cycles(
    tracer: Arc<dyn Tracer>,
    source: Arc<str>,
    mut cycles: watch::Receiver<Option<FinishedCycle>>,
) {
    while cycles.changed().await.is_ok() {
        let cycle = cycles.borrow_and_update().clone();
        let trace_id = random();
        if let Some(cycle) = cycle
            && tracer.decide(trace_id, None) == Decision::Record
        {
            tracer.finished(vec![span(trace_id, &source, &cycle)]);
        }
    }
}

fn span(trace_id: [u8; 16], source: &str, cycle: &FinishedCycle) -> TraceSpan {
    let number = |number: u64| SpanValue::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let mut attributes = vec![
        ("proxy.source", SpanValue::from(source)),
        ("proxy.source.poll", number(cycle.cycle)),
    ];
    match cycle.error {
        Some(error) => attributes.push(("error.type", SpanValue::from(error.as_str()))),
        None => attributes.extend([
            ("proxy.source.services", number(cycle.services as u64)),
            (
                "proxy.source.changed",
                SpanValue::from(match cycle.changed {
                    true => "true",
                    false => "false",
                }),
            ),
        ]),
    }
    let start = cycle.began.wall_clock();
    TraceSpan {
        trace_id,
        span_id: random(),
        parent: None,
        trace_state: String::new(),
        kind: SpanKind::Internal,
        name: "discovery poll".to_owned(),
        start,
        end: start
            .checked_add(cycle.took)
            .unwrap_or_else(SystemTime::now),
        attributes,
        is_error: cycle.error.is_some(),
    }
}
