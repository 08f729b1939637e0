//! Where routes lead.

use super::*;

#[test]
fn weighted_routes_share_their_requests() {
    let generation = first(snapshot(
        r#"{"Routes":{"r":{"Match":{"Path":"/"},"WeightedClusters":[
                {"ClusterId":"c1","Weight":3},{"ClusterId":"none","Weight":1},{"ClusterId":"c2","Weight":0}]}},
            "Clusters":{"c1":{},"c2":{}}}"#,
    ));
    let route = generation.snapshot().route_at(RouteIndex(0));
    let random = Random::seeded(5);
    let mut chosen = [0; 3];
    for _ in 0..4_000 {
        let cluster = generation.route(RouteIndex(0)).choose(route, &random);
        chosen[cluster.map_or(2, |index| index.0 as usize)] += 1;
    }
    // A missing cluster's share is refused, not given to the others; 6 standard deviations are 164.
    assert!((2_836..3_164).contains(&chosen[0]), "{chosen:?}");
    assert_eq!((chosen[1], chosen[0] + chosen[2]), (0, 4_000));
}

#[test]
fn a_route_without_a_cluster_chooses_none() {
    let generation = first(snapshot(
        r#"{"Routes":{"none":{"Match":{"Path":"/a"}},"missing":{"ClusterId":"x","Match":{"Path":"/b"}},
            "there":{"ClusterId":"C","Match":{"Path":"/c"}}},"Clusters":{"c":{}}}"#,
    ));
    let choices: Vec<_> = (generation
        .snapshot()
        .routes()
        .iter()
        .zip(generation.routes()))
    .map(|(route, state)| state.choose(route, &Random::default()))
    .collect();
    assert_eq!(choices, [None, None, Some(ClusterIndex(0))]);
}

#[test]
fn a_route_that_asks_for_authorization_is_refused() {
    let generation = first(snapshot(
        r#"{"Routes":{
            "a":{"ClusterId":"c","Match":{"Path":"/a"},"AuthorizationPolicy":"Default"},
            "b":{"ClusterId":"c","Match":{"Path":"/b"},"AuthorizationPolicy":"anonymous"},
            "c":{"ClusterId":"c","Match":{"Path":"/c"}}},"Clusters":{"c":{}}}"#,
    ));
    let refused: Vec<_> = generation
        .routes()
        .iter()
        .map(|r| r.refusal().is_some())
        .collect();
    assert_eq!(refused, [true, false, false]);
}
