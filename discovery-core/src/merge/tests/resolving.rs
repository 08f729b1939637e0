//! Tests of destinations whose host names the merge resolves.

use async_trait::async_trait;

use super::*;
use crate::discovery::Destinations;
use crate::resolver::{DnsResolver, ResolveError, Resolved};
use crate::testing::ScriptedLookup;

#[tokio::test(start_paused = true)]
async fn destinations_follow_their_names() {
    let lookup = ScriptedLookup::new();
    lookup.set("a.example", &["10.0.0.2", "10.0.0.1"]);
    let one = provider(
        "one",
        simple(
            &[],
            &[("a", "http://a.example:8080/x"), ("ip", "http://10.9.9.9")],
        ),
    );
    let resolver = DnsResolver::with_lookup(lookup.clone()).with_refresh(Duration::from_secs(30));
    let merged = Merge::new()
        .provider(one.clone())
        .resolver(resolver)
        .start();
    let state = ready(&merged).await;
    let expected = [
        "a=http://10.0.0.1:8080/x,http://10.0.0.2:8080/x",
        "ip=http://10.9.9.9",
    ];
    assert_eq!(serving(&state), expected);
    assert_eq!(state.publications, 1);

    // The same addresses in another order are no change.
    lookup.set("a.example", &["10.0.0.1", "10.0.0.2"]);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(lookup.calls(), 2);
    assert_eq!(merged.state().publications, 1);

    lookup.set("a.example", &["10.0.0.3"]);
    tokio::time::sleep(Duration::from_secs(31)).await;
    let state = merged.state();
    assert_eq!(
        serving(&state),
        ["a=http://10.0.0.3:8080/x", "ip=http://10.9.9.9"]
    );
    assert_eq!(state.publications, 2);

    // Another provider's change does not look names up.
    let calls = lookup.calls();
    one.update(simple(&[], &[("a", "http://a.example:8080/x")]));
    assert_eq!(
        serving(&*settled(&merged).await),
        ["a=http://10.0.0.3:8080/x"]
    );
    assert_eq!(lookup.calls(), calls);
}

/// E13 and E14: a name that cannot be looked up is a problem at start, and keeps its addresses later.
#[tokio::test(start_paused = true)]
async fn a_failed_look_up_keeps_what_was_known() {
    let lookup = ScriptedLookup::new();
    lookup.set("a.example", &["10.0.0.1"]);
    let one = provider(
        "one",
        simple(&[], &[("a", "http://a.example"), ("b", "http://b.example")]),
    );
    let resolver = DnsResolver::with_lookup(lookup.clone()).with_refresh(Duration::from_secs(30));
    let merged = Merge::new().provider(one).resolver(resolver).start();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["a=http://10.0.0.1/", "b="]);
    assert_eq!(
        problems(&state),
        ["one: error at /Clusters/b/Destinations/d: `b.example` cannot be resolved: no such name"]
    );

    lookup.fail("a.example");
    lookup.set("b.example", &["10.0.0.2"]);
    tokio::time::sleep(Duration::from_secs(40)).await;
    let state = merged.state();
    assert_eq!(
        serving(&state),
        ["a=http://10.0.0.1/", "b=http://10.0.0.2/"]
    );
    assert_eq!(
        problems(&state),
        [
            "one: warning at /Clusters/a/Destinations/d: `a.example` cannot be resolved, its last addresses continue to serve: the name server failed"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_name_holds_up_its_own_cluster_and_others_only_for_a_moment() {
    let lookup = ScriptedLookup::new();
    lookup.set("a.example", &["10.0.0.1"]);
    lookup.hang("slow.example");
    let one = provider(
        "one",
        simple(
            &[],
            &[("slow", "http://slow.example"), ("a", "http://a.example")],
        ),
    );
    let merged = Merge::new()
        .provider(one)
        .resolver(DnsResolver::with_lookup(lookup.clone()))
        .start();
    let begun = tokio::time::Instant::now();
    let state = ready(&merged).await;
    assert!(
        begun.elapsed() <= Duration::from_secs(6),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(serving(&state), ["slow=", "a=http://10.0.0.1/"]);
    lookup.set("slow.example", &["10.0.0.2"]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        serving(&merged.state()),
        ["slow=http://10.0.0.2/", "a=http://10.0.0.1/"]
    );
}

/// Resolves each cluster by its name.
struct ByName;

#[async_trait]
impl DestinationResolver for ByName {
    async fn resolve(
        &self,
        cluster: &ClusterId,
        destinations: &Destinations,
    ) -> Result<Resolved, ResolveError> {
        let to = destinations[0].address.clone();
        if to.contains("fail") {
            let cause = std::io::Error::other("no backend");
            return Err(ResolveError::new("cannot resolve").with_source(cause));
        }
        assert!(!to.contains("panic"), "as told");
        assert_eq!(*cluster, "a");
        Ok(Resolved::new(destinations.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_fails_or_panics_keeps_the_cluster_as_it_was() {
    let one = provider("one", simple(&[], &[("a", "http://1")]));
    let merged = Merge::new().provider(one.clone()).resolver(ByName).start();
    ready(&merged).await;
    one.update(simple(&[], &[("a", "http://fail")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://1"]);
    assert_eq!(
        problems(&state),
        [
            "one: warning at /Clusters/a: the last destinations continue to serve: cannot resolve: no backend"
        ]
    );
    one.update(simple(&[], &[("a", "http://panic")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://1"]);
    assert!(problems(&state)[0].contains("the resolver panicked: as told"));
    one.update(simple(&[], &[("a", "http://2")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://2"]);
    assert!(state.problems.is_empty());
}

/// Makes a destination bad that is called so.
struct Careless;

#[async_trait]
impl DestinationResolver for Careless {
    async fn resolve(
        &self,
        _: &ClusterId,
        destinations: &Destinations,
    ) -> Result<Resolved, ResolveError> {
        let mut destinations = destinations.clone();
        for destination in destinations.values_mut() {
            if destination.address.contains("bad") {
                destination.address = "::not an address::".to_owned();
            }
        }
        Ok(Resolved::new(destinations))
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolver_s_bad_answer_leaves_the_last_known_good_destinations() {
    let one = provider("one", simple(&[], &[("a", "http://1"), ("b", "http://1")]));
    let merged = Merge::new()
        .provider(one.clone())
        .resolver(Careless)
        .start();
    ready(&merged).await;
    one.update(simple(&[], &[("a", "http://bad"), ("b", "http://2")]));
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://1", "b=http://2"]);
    assert_eq!(state.problems.len(), 1, "{:?}", state.problems);
    assert!(problems(&state)[0].contains("the resolver's answer cannot be used"));
}

#[tokio::test(start_paused = true)]
async fn clusters_that_change_at_the_same_time_are_published_together() {
    let lookup = ScriptedLookup::new();
    let names: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
    let addresses: Vec<String> = names.iter().map(|name| format!("http://{name}")).collect();
    for name in &names {
        lookup.set(name, &["10.0.0.1"]);
    }
    let clusters = names.iter().zip(&addresses).map(|(n, a)| (&**n, &**a));
    let clusters: Vec<_> = clusters.collect();
    let resolver = DnsResolver::with_lookup(lookup.clone()).with_refresh(Duration::from_secs(30));
    let merged = Merge::new()
        .provider(provider("one", simple(&[], &clusters)))
        .resolver(resolver)
        .start();
    assert_eq!(ready(&merged).await.publications, 1);
    for name in &names {
        lookup.set(name, &["10.0.0.2"]);
    }
    tokio::time::sleep(Duration::from_secs(31)).await;
    let state = merged.state();
    assert!(
        serving(&state)
            .iter()
            .all(|s| s.contains("=http://10.0.0.2/"))
    );
    assert_eq!(state.publications, 2);
}

#[tokio::test(start_paused = true)]
async fn the_resolver_forgets_clusters_that_are_gone() {
    let lookup = ScriptedLookup::new();
    lookup.set("a.example", &["10.0.0.1"]);
    let config = simple(&[], &[("a", "http://a.example")]);
    let one = provider("one", config.clone());
    let merged = Merge::new()
        .provider(one.clone())
        .resolver(DnsResolver::with_lookup(lookup.clone()))
        .start();
    assert_eq!(serving(&*ready(&merged).await), ["a=http://10.0.0.1/"]);
    one.update(ProxyConfig::default());
    settled(&merged).await;
    lookup.fail("a.example");
    one.update(config);
    assert_eq!(serving(&*settled(&merged).await), ["a="]);
}
