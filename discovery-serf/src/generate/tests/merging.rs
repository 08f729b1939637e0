//! Tests of a gateway's configuration: the result through a runner, merged with nothing else.

use std::time::Duration;

use discovery_core::testing::ScriptedDiscoverer;
use discovery_core::{Merge, Runner};

use super::*;

/// A guard against hanging, in virtual time.
const LONG: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(start_paused = true)]
async fn a_conflict_of_routes_is_told_once_and_both_are_there() {
    let source = ScriptedDiscoverer::new("serf");
    source.answer_with(discover(&[
        member("n1", "10.0.0.1", "b", &[("host", "shop.local")]),
        member("n2", "10.0.0.2", "a", &[("host", "Shop.local")]),
        member(
            "n3",
            "10.0.0.3",
            "c",
            &[("host", "c.local"), ("weight", "x")],
        ),
    ]));
    let merged = Merge::new().provider(Runner::new(source).start()).start();
    let state = tokio::time::timeout(LONG, merged.ready());
    let state = state.await.expect("the source has answered");
    let told: Vec<_> = state
        .problems
        .iter()
        .map(|told| format!("{} {}", told.problem.pointer, told.problem.code))
        .collect();
    assert_eq!(
        told,
        [
            "/Services/c/members/n3/tags/weight invalid_weight",
            "/Routes/route:b duplicate_route_criteria",
        ]
    );
    assert_eq!(
        routes(state.snapshot.config()),
        [
            "route:a host Shop.local",
            "route:b host shop.local",
            "route:c host c.local",
        ]
    );
}
