//! The execution of a plan's writes, each after its prerequisites.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::write::write;
use crate::arm::{ArmClient, ArmError, ArmErrorKind};
use crate::plan::{Action, Operation, Plan};

/// The result of a write.
#[derive(Debug)]
pub(super) enum Written {
    /// The write succeeded.
    Done,
    /// The write failed.
    Failed(Arc<ArmError>),
    /// The write was not started: a prerequisite failed, or the plan is out of date.
    Skipped,
}

/// Carries out the writes of a plan except those in `passed_over`, and returns the result of each.
///
/// After a conflict with another client's write no further write is started, since the plan is out of date.
///
/// # Cancel safety
///
/// Started writes may be carried out, others are not started.
pub(super) async fn run(
    client: &ArmClient,
    plan: &Plan,
    parallel: usize,
    passed_over: &BTreeSet<usize>,
) -> Vec<Written> {
    let mut results: Vec<Option<Written>> = plan.actions.iter().map(|_| None).collect();
    for index in passed_over {
        if let Some(slot) = results.get_mut(*index) {
            *slot = Some(Written::Skipped);
        }
    }
    let mut running = FuturesUnordered::new();
    let mut begun = BTreeSet::new();
    let mut is_stale = false;
    loop {
        skip_dependents(plan, &mut results);
        let ready = |index: &usize| {
            let before = plan.edges.iter().filter(|edge| edge.after == *index);
            let mut before = before.map(|edge| results.get(edge.before));
            before.all(|result| matches!(result, Some(Some(Written::Done)) | None))
        };
        let next: Vec<usize> = (0..plan.actions.len())
            .filter(|index| {
                !is_stale && !begun.contains(index) && matches!(results.get(*index), Some(None))
            })
            .filter(ready)
            .take(parallel.max(1).saturating_sub(running.len()))
            .collect();
        for index in next {
            if let Some(action) = plan.actions.get(index) {
                begun.insert(index);
                running.push(async move { (index, carry_out(client, action).await) });
            }
        }
        let Some((index, result)) = running.next().await else {
            break;
        };
        if let Err(error) = &result {
            is_stale |= is_overtaken(error);
        }
        if let Some(slot) = results.get_mut(index) {
            *slot = Some(match result {
                Ok(()) => Written::Done,
                Err(error) => Written::Failed(Arc::new(error)),
            });
        }
    }
    results
        .into_iter()
        .map(|result| result.unwrap_or(Written::Skipped))
        .collect()
}

/// Marks writes as skipped whose prerequisites failed or were skipped.
fn skip_dependents(plan: &Plan, results: &mut [Option<Written>]) {
    loop {
        let is_off = |index: usize| {
            matches!(
                results.get(index),
                Some(Some(Written::Failed(_) | Written::Skipped))
            )
        };
        let next = plan
            .edges
            .iter()
            .find(|edge| is_off(edge.before) && matches!(results.get(edge.after), Some(None)));
        match next.and_then(|edge| results.get_mut(edge.after)) {
            Some(slot) => *slot = Some(Written::Skipped),
            None => break,
        }
    }
}

async fn carry_out(client: &ArmClient, action: &Action) -> Result<(), ArmError> {
    let reason = action.reasons.first().map_or("", String::as_str);
    if let Operation::DeletePublicIp { .. } = action.operation {
        // The address cannot be restored, so its loss is logged before.
        tracing::warn!(action = %action.operation, reason, "a public address is given up");
    }
    let result = write(client, &action.operation).await;
    match &result {
        Ok(()) => tracing::info!(action = %action.operation, reason, "written"),
        Err(error) => tracing::warn!(action = %action.operation, reason, %error, "not written"),
    }
    result
}

/// The codes of temporary conflicts. Other causes of status 409, such as a lock, a quota or a name in use,
/// persist however often the write is retried.
const UNDER_WAY: [&str; 5] = [
    "AnotherOperationInProgress",
    "CanceledAndSupersededDueToAnotherOperation",
    "OperationPreempted",
    "ReferencedResourceNotProvisioned",
    "RetryableError",
];

/// Returns true if another client has written, or is writing. A new plan may then succeed.
pub(super) fn is_overtaken(error: &ArmError) -> bool {
    match error.kind() {
        ArmErrorKind::PreconditionFailed => true,
        ArmErrorKind::Conflict if error.retry_after().is_some() => true,
        _ => UNDER_WAY.iter().any(|code| error.has_code(code)),
    }
}
