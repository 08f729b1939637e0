//! Results that can be trusted.

use std::future::Future;

use crate::client::{Answer, Consistency, ConsulError, ConsulErrorKind, Query};

/// Makes a query, and repeats it at the leader if the result is doubtful: servers that have lost their
/// leader respond with their own data, which is empty right after a start.
pub(super) async fn believable<T, F, A>(
    query: Query,
    is_empty: fn(&T) -> bool,
    ask: F,
) -> Result<Answer<T>, ConsulError>
where
    F: Fn(Query) -> A,
    A: Future<Output = Result<Answer<T>, ConsulError>>,
{
    let is_from_leader = matches!(
        query.consistency,
        Consistency::Default | Consistency::Consistent
    );
    let answer = ask(query.clone()).await?;
    let is_leaderless = answer.meta.known_leader == Some(false);
    if !is_leaderless && (is_from_leader || !is_empty(&answer.value)) {
        return Ok(answer);
    }
    if is_from_leader {
        return Err(leaderless());
    }
    let at_once = Query {
        consistency: Consistency::Default,
        blocking: None,
        ..query
    };
    let answer = ask(at_once).await?;
    match answer.meta.known_leader {
        Some(false) => Err(leaderless()),
        _ => Ok(answer),
    }
}

fn leaderless() -> ConsulError {
    let message = "the responding server has no leader, so its response does not count";
    ConsulError::new(ConsulErrorKind::NoLeader, "a read", message)
}
