//! Destinations that a source cannot look at while it knows the rest of their service.

use super::*;

/// A cluster `web` with these destinations; ids are partitions with numbers, as `p1/1`.
fn parts(destinations: &[&str]) -> DiscoveredService {
    let mut config = fragment("web", "http://none");
    let all = destinations.iter().map(|id| {
        let destination = DestinationConfig {
            address: format!("http://{}", id.replace('/', "-")),
            ..Default::default()
        };
        ((*id).into(), destination)
    });
    config.clusters[0].destinations = all.collect();
    DiscoveredService::configured("web", config)
}

fn ids(state: &ProviderState) -> Vec<&str> {
    let config = state.config.as_deref().expect("there is an answer");
    let destinations = config.clusters[0].destinations.keys();
    destinations.map(|id| id.as_str()).collect()
}

fn codes(state: &ProviderState) -> Vec<&str> {
    state
        .problems
        .iter()
        .map(|problem| &*problem.code)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn each_part_serves_on_for_its_own_time() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([parts(&["p1/1", "p2/1", "p3/1"])]);
    // About every thirty seconds.
    source.answer([parts(&["p1/2", "p3/1"]).with_unread("p2/")]);
    source.answer([parts(&["p1/2"]).with_unread("p2/").with_unread("p3/")]);
    source.answer([parts(&["p1/3"]).with_unread("p2/").with_unread("p3/")]);
    source.answer([parts(&["p1/3"]).with_unread("p3/").with_unread("p2/")]);
    source.answer([parts(&["p1/3", "p2/9"])]);
    let options = options().with_unread_grace(Duration::from_secs(75));
    let provider = Runner::new(source.clone()).options(options).start();
    let (kept, old) = ("destinations_not_read", "destinations_too_old");
    for (cycle, expected, said) in [
        (1, &["p1/1", "p2/1", "p3/1"][..], &[][..]),
        (2, &["p1/2", "p3/1", "p2/1"], &[kept]),
        (3, &["p1/2", "p3/1", "p2/1"], &[kept]),
        (4, &["p1/3", "p3/1"], &[kept, old]),
        (5, &["p1/3"], &[old]),
        // The current rules of the source count again.
        (6, &["p1/3", "p2/9"], &[]),
    ] {
        let state = after_cycles(&source, &provider, cycle).await;
        let mut found = ids(&state);
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!((found, codes(&state)), (expected, said.to_vec()), "{cycle}");
    }
}
