//! The choice of a cluster by a route.

use http::request::Parts;
use proxy_model::compiled::KeyRejection;

use super::*;
use crate::head::HttpHead;
use crate::state::Nowhere;

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
    let request = request("/");
    let head = HttpHead::new(&request);
    for _ in 0..4_000 {
        let state = generation.route(RouteIndex(0));
        let cluster = state.choose(route, generation.snapshot(), &head, &random);
        chosen[cluster.map_or(2, |index| index.0 as usize)] += 1;
    }
    // The share of a missing cluster is rejected, not given to the others; 6 standard deviations
    // are 164.
    assert!((2_836..3_164).contains(&chosen[0]), "{chosen:?}");
    assert_eq!((chosen[1], chosen[0] + chosen[2]), (0, 4_000));
}

#[test]
fn a_route_without_a_cluster_chooses_none() {
    let generation = first(snapshot(
        r#"{"Routes":{"none":{"Match":{"Path":"/a"}},"missing":{"ClusterId":"x","Match":{"Path":"/b"}},
            "there":{"ClusterId":"C","Match":{"Path":"/c"}}},"Clusters":{"c":{}}}"#,
    ));
    let request = request("/");
    let head = HttpHead::new(&request);
    let choices: Vec<_> = (generation
        .snapshot()
        .routes()
        .iter()
        .zip(generation.routes()))
    .map(|(route, state)| state.choose(route, generation.snapshot(), &head, &Random::default()))
    .collect();
    assert_eq!(
        choices,
        [
            Err(Nowhere::NoCluster),
            Err(Nowhere::NoCluster),
            Ok(ClusterIndex(0))
        ]
    );
}

#[test]
fn a_route_with_partitions_chooses_by_key() {
    let generation = first(snapshot(
        r#"{"Routes":{"r":{"Match":{"Path":"/{tenant?}"},"PartitionedClusters":{
                "Key":{"RouteValue":"tenant"},
                "Partitions":[{"ClusterId":"c1","LowKey":10,"HighKey":19},{"ClusterId":"none","LowKey":0,"HighKey":9},
                    {"ClusterId":"c2","LowKey":20,"HighKey":20}]}}},
            "Clusters":{"c1":{},"c2":{}}}"#,
    ));
    let route = generation.snapshot().route_at(RouteIndex(0));
    for (path, expected) in [
        ("/10", Ok(ClusterIndex(0))),
        ("/%31%39", Ok(ClusterIndex(0))),
        ("/20", Ok(ClusterIndex(1))),
        // The partition of a missing cluster is rejected, not given to the others.
        ("/9", Err(Nowhere::NoCluster)),
        ("/21", Err(Nowhere::NoPartition(KeyRejection::NoPartition))),
        ("/x", Err(Nowhere::NoPartition(KeyRejection::NotANumber))),
        ("/", Err(Nowhere::NoPartition(KeyRejection::Missing))),
    ] {
        let request = request(path);
        let state = generation.route(RouteIndex(0));
        let chosen = state.choose(
            route,
            generation.snapshot(),
            &HttpHead::new(&request),
            &Random::default(),
        );
        assert_eq!(chosen, expected, "{path}");
    }
}

fn request(path: &str) -> Parts {
    let request = http::Request::get(path).body(()).unwrap();
    request.into_parts().0
}

#[test]
fn a_route_that_asks_for_authorization_is_rejected() {
    let generation = first(snapshot(
        r#"{"Routes":{
            "a":{"ClusterId":"c","Match":{"Path":"/a"},"AuthorizationPolicy":"Default"},
            "b":{"ClusterId":"c","Match":{"Path":"/b"},"AuthorizationPolicy":"anonymous"},
            "c":{"ClusterId":"c","Match":{"Path":"/c"}}},"Clusters":{"c":{}}}"#,
    ));
    let rejected: Vec<_> = generation
        .routes()
        .iter()
        .map(|r| r.rejection().is_some())
        .collect();
    assert_eq!(rejected, [true, false, false]);
}
