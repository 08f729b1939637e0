//! Routes that take the requests of an earlier provider's routes by their `Order`.

use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::{Problem, Problems, RouteId, Snapshot, pointer_to};

/// Adds a warning for each route with the criteria of an earlier provider's route and a lower `Order`. With
/// equal `Order` the earlier provider's route comes first, so that an owner of a service takes an
/// operator's requests only on purpose.
pub(super) fn warn(
    snapshot: &Snapshot,
    owners: &IndexMap<RouteId, usize>,
    providers: &[Arc<str>],
    problems: &mut Problems,
) {
    let mut first = None;
    let has_several = owners
        .values()
        .any(|owner| *first.get_or_insert(*owner) != *owner);
    let mut orders = snapshot.routes().iter().map(|route| route.order());
    let first = orders.next();
    if !has_several || orders.all(|order| Some(order) == first) {
        return;
    }
    for (winner, loser) in snapshot.overrides() {
        let (Some(taker), Some(owner)) = (owners.get(winner.id()), owners.get(loser.id())) else {
            continue;
        };
        if taker <= owner {
            continue;
        }
        let message = format!(
            "the route takes the requests of the route `{}` of the provider `{}`, since its `Order` is {} and not {}",
            loser.id(),
            providers[*owner],
            winner.order(),
            loser.order(),
        );
        let pointer = pointer_to("/Routes", winner.id().as_str());
        let suggestion =
            "if that is not intended, leave `Order` out, or give the other route a lower one";
        problems.push(
            Problem::warning(pointer, "order_overrides", message).with_suggestion(suggestion),
        );
    }
}
