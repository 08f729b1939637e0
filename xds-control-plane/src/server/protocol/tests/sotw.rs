//! State of the world.

use super::*;
use crate::server::fixtures::{clusters, endpoints, listeners, routes};

#[test]
fn all_clusters_and_listeners_are_sent_to_who_names_none() {
    let mut peer = Peer::sotw(&[clusters(&["a=1", "b=1"]), listeners(&["l=1"])]);
    assert_eq!(peer.want(Cluster, &[]), ["cds a=1 b=1"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.want(Listener, &[]), ["lds l=1"]);
    assert_eq!(peer.accept(Listener, &[]), [""; 0]);
}

#[test]
fn no_names_are_no_wildcard_for_endpoints_and_routes() {
    let mut peer = Peer::sotw(&[endpoints(&["a=1"]), routes(&["r=1"])]);
    assert_eq!(peer.want(Endpoint, &[]), [""; 0]);
    assert_eq!(peer.want(Route, &[]), [""; 0]);
}

#[test]
fn that_there_is_no_cluster_is_said() {
    let mut peer = Peer::sotw(&[]);
    assert_eq!(peer.want(Cluster, &[]), ["cds"]);
    assert_eq!(peer.want(Listener, &[]), ["lds"]);
}

#[test]
fn nothing_is_sent_before_there_is_something_to_serve() {
    let mut peer = Peer::early(StreamProtocol::Sotw, Subscription::Aggregated);
    assert_eq!(peer.want(Cluster, &[]), [""; 0]);
    assert_eq!(peer.want(Endpoint, &["a"]), [""; 0]);
    let first = [clusters(&["a=1"]), endpoints(&["a=1"])];
    assert_eq!(peer.publish(&first), ["cds a=1", "eds a=1"]);
}

#[test]
fn a_change_of_a_cluster_brings_all_and_one_of_endpoints_only_that() {
    let mut peer = Peer::sotw(&[clusters(&["a=1", "b=1"]), endpoints(&["a=1", "b=1"])]);
    peer.want(Cluster, &[]);
    peer.want(Endpoint, &["a", "b"]);
    peer.accept(Cluster, &[]);
    peer.accept(Endpoint, &["a", "b"]);
    let next = [clusters(&["a=1", "b=1"]), endpoints(&["a=1", "b=2"])];
    assert_eq!(peer.publish(&next), ["eds b=2"]);
    peer.accept(Endpoint, &["a", "b"]);
    let next = [
        clusters(&["a=1", "b=1", "c=1"]),
        endpoints(&["a=1", "b=2", "c=1"]),
    ];
    assert_eq!(peer.publish(&next), ["cds a=1 b=1 c=1"]);
}

#[test]
fn what_is_unchanged_is_not_sent() {
    let parts = [clusters(&["a=1"]), endpoints(&["a=1"]), routes(&["r=1"])];
    let mut peer = Peer::sotw(&parts);
    peer.want(Cluster, &[]);
    peer.want(Endpoint, &["a"]);
    peer.want(Route, &["r"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.accept(Endpoint, &["a"]), [""; 0]);
    assert_eq!(peer.accept(Route, &["r"]), [""; 0]);
    assert_eq!(peer.publish(&parts), [""; 0]);
    let other = [
        clusters(&["a=1"]),
        endpoints(&["a=1"]),
        routes(&["r=1", "other=1"]),
    ];
    assert_eq!(peer.publish(&other), [""; 0]);
}

/// X02: the version is of the content, so replicas and restarts agree.
#[test]
fn equal_content_has_an_equal_version() {
    let parts = [clusters(&["a=1", "b=1"]), endpoints(&["b=1", "a=1"])];
    let versions = |mut peer: Peer| {
        peer.want(Cluster, &[]);
        peer.want(Endpoint, &["a", "b"]);
        (
            peer.last(Cluster).version.to_string(),
            peer.last(Endpoint).version,
        )
    };
    let one = versions(Peer::sotw(&parts));
    assert_eq!(one, versions(Peer::sotw(&parts)));
    assert_eq!(one.0.len(), 16);
    let other = [clusters(&["a=1", "b=2"]), endpoints(&["b=1", "a=1"])];
    assert_ne!(one.0, versions(Peer::sotw(&other)).0);
}

/// X06.
#[test]
fn further_names_are_answered_though_the_version_is_the_same() {
    let mut peer = Peer::sotw(&[endpoints(&["a=1", "b=1"])]);
    assert_eq!(peer.want(Endpoint, &["a"]), ["eds a=1"]);
    assert_eq!(peer.accept(Endpoint, &["a", "b"]), ["eds b=1"]);
}

/// X07.
#[test]
fn who_wants_no_endpoints_any_more_gets_none() {
    let mut peer = Peer::sotw(&[endpoints(&["a=1"])]);
    peer.want(Endpoint, &["a"]);
    assert_eq!(peer.accept(Endpoint, &[]), [""; 0]);
    assert_eq!(peer.publish(&[endpoints(&["a=2"])]), [""; 0]);
}

#[test]
fn a_name_that_was_dropped_and_wanted_again_is_sent_again() {
    let mut peer = Peer::sotw(&[routes(&["r=1", "s=1"])]);
    peer.want(Route, &["r", "s"]);
    assert_eq!(peer.accept(Route, &["s"]), [""; 0]);
    assert_eq!(peer.want(Route, &["r", "s"]), ["rds r=1"]);
}

/// X08.
#[test]
fn the_wildcard_comes_and_goes_as_it_is_written() {
    let all = [clusters(&["a=1", "b=1"])];
    let next = |content: &str| {
        [clusters(&[
            &format!("a={content}") as &str,
            &format!("b={content}"),
        ])]
    };
    let mut peer = Peer::sotw(&all);
    assert_eq!(peer.want(Cluster, &[]), ["cds a=1 b=1"]);
    assert_eq!(peer.accept(Cluster, &["*", "a"]), ["cds a=1 b=1"]);
    peer.accept(Cluster, &["*", "a"]);
    assert_eq!(peer.publish(&next("2")), ["cds a=2 b=2"]);
    assert_eq!(peer.accept(Cluster, &["a"]), [""; 0]);
    assert_eq!(peer.publish(&[clusters(&["a=2", "b=3"])]), [""; 0]);
    assert_eq!(peer.publish(&next("3")), ["cds a=3"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.publish(&next("4")), [""; 0]);
}

#[test]
fn an_explicit_wildcard_that_is_dropped_is_no_legacy_one() {
    let mut peer = Peer::sotw(&[clusters(&["a=1"])]);
    assert_eq!(peer.want(Cluster, &["*"]), ["cds a=1"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.publish(&[clusters(&["a=2"])]), [""; 0]);
}

#[test]
fn named_clusters_come_as_a_full_set_of_those() {
    let mut peer = Peer::sotw(&[clusters(&["a=1", "b=1", "c=1"])]);
    assert_eq!(peer.want(Cluster, &["a", "b", "none"]), ["cds a=1 b=1"]);
    peer.accept(Cluster, &["a", "b", "none"]);
    let next = [clusters(&["a=1", "b=2", "c=1"])];
    assert_eq!(peer.publish(&next), ["cds a=1 b=2"]);
}

#[test]
fn a_name_that_does_not_exist_yet_is_sent_when_it_does() {
    let mut peer = Peer::sotw(&[]);
    assert_eq!(peer.want(Route, &["r"]), [""; 0]);
    assert_eq!(peer.want(Endpoint, &["a"]), [""; 0]);
    assert_eq!(peer.publish(&[routes(&["r=1"])]), ["rds r=1"]);
    peer.accept(Route, &["r"]);
    // Its removal cannot be reported; when it is back it is sent, even if unchanged.
    assert_eq!(peer.publish(&[]), [""; 0]);
    assert_eq!(peer.publish(&[routes(&["r=1"])]), ["rds r=1"]);
}

#[test]
fn a_known_cluster_without_endpoints_has_an_empty_assignment() {
    let mut peer = Peer::sotw(&[clusters(&["a=1"])]);
    // The body is of a message with nothing but a name.
    assert_eq!(peer.want(Endpoint, &["a", "b"]), ["eds a=\n\u{1}a"]);
}

/// X25: others wait for the rest of the names, which may never come.
#[test]
fn a_part_of_the_endpoints_is_answered_at_once() {
    let mut peer = Peer::sotw(&[
        clusters(&["a=1", "b=1", "c=1"]),
        endpoints(&["a=1", "b=1", "c=1"]),
    ]);
    peer.want(Cluster, &[]);
    assert_eq!(peer.want(Endpoint, &["b"]), ["eds b=1"]);
}

#[test]
fn a_request_about_an_overtaken_response_is_ignored() {
    let mut peer = Peer::sotw(&[endpoints(&["a=1", "b=1"])]);
    peer.want(Endpoint, &["a"]);
    let old = peer.nonce(Endpoint);
    assert_eq!(peer.accept(Endpoint, &["a", "b"]), ["eds b=1"]);
    let (heard, replies) = peer.say(Endpoint, sotw(&[], &old));
    assert_eq!((heard, replies), (Heard::Stale, vec![]));
    // It had unsubscribed from them with that request, so it may have neither.
    let again = peer.accept(Endpoint, &["a", "b"]);
    assert_eq!(again, ["eds a=1 b=1"]);
    assert_eq!(peer.accept(Endpoint, &["a", "b"]), [""; 0]);
    let next = [endpoints(&["a=1", "b=2"])];
    assert_eq!(peer.publish(&next), ["eds b=2"]);
}

#[test]
fn a_first_request_may_bear_the_nonce_of_another_stream() {
    let mut peer = Peer::sotw(&[clusters(&["a=1"])]);
    let (heard, replies) = peer.say(Cluster, sotw(&[], "77"));
    assert_eq!((heard, replies), (Heard::Asked, vec!["cds a=1".to_owned()]));
}

#[test]
fn nonces_are_different_on_one_stream() {
    let mut peer = Peer::sotw(&[clusters(&["a=1"]), endpoints(&["a=1"])]);
    peer.want(Cluster, &[]);
    peer.want(Endpoint, &["a"]);
    let first = (peer.nonce(Cluster), peer.nonce(Endpoint));
    assert_ne!(first.0, first.1);
    peer.accept(Cluster, &[]);
    peer.publish(&[clusters(&["a=2"])]);
    assert_ne!(peer.nonce(Cluster), first.0);
}

fn reconnecting(names: &[&str], version: Version) -> Request {
    Request {
        wants: Wants::Sotw {
            names: super::names(names),
            version: Some(version),
        },
        ..Request::default()
    }
}

#[test]
fn who_reconnects_with_the_version_of_all_clusters_is_sent_none() {
    let mut peer = Peer::sotw(&[clusters(&["a=1"]), endpoints(&["a=1"])]);
    peer.want(Cluster, &[]);
    peer.want(Endpoint, &["a"]);
    let (of_clusters, of_endpoints) = (peer.last(Cluster).version, peer.last(Endpoint).version);
    peer.reconnect();
    assert_eq!(peer.say(Cluster, reconnecting(&[], of_clusters)).1, [""; 0]);
    // What is named may be another selection than the one that the version was of.
    let (_, replies) = peer.say(Endpoint, reconnecting(&["a"], of_endpoints));
    assert_eq!(replies, ["eds a=1"]);
    let next = [clusters(&["a=2"]), endpoints(&["a=1"])];
    assert_eq!(peer.publish(&next), ["cds a=2", "eds a=1"]);

    peer.reconnect();
    let (_, replies) = peer.say(Cluster, reconnecting(&[], of_clusters));
    assert_eq!(replies, ["cds a=2"]);
    peer.reconnect();
    let current = peer.exchange.view().unwrap();
    let current = current.served(Cluster, Subscription::Aggregated).version();
    let (_, replies) = peer.say(Cluster, reconnecting(&["a"], current));
    assert_eq!(replies, ["cds a=2"]);
}

#[test]
fn while_a_response_is_open_changes_wait_and_only_the_last_is_sent() {
    let mut peer = Peer::sotw(&[endpoints(&["a=1"])]);
    assert_eq!(peer.want(Endpoint, &["a"]), ["eds a=1"]);
    for content in ["a=2", "a=3", "a=4"] {
        assert_eq!(peer.publish(&[endpoints(&[content])]), [""; 0]);
    }
    assert_eq!(peer.accept(Endpoint, &["a"]), ["eds a=4"]);
}

#[test]
fn changes_do_not_wait_for_ever() {
    let mut peer = Peer::sotw(&[endpoints(&["a=1"])]);
    peer.want(Endpoint, &["a"]);
    peer.publish(&[endpoints(&["a=2"])]);
    assert_eq!(peer.exchange.deadline(peer.now), Some(peer.now + PATIENCE));
    assert_eq!(peer.pass(PATIENCE / 2), [""; 0]);
    assert_eq!(peer.pass(PATIENCE / 2), ["eds a=2"]);
    assert_eq!(peer.pass(PATIENCE), [""; 0]);
    assert_eq!(peer.exchange.deadline(peer.now), None);
}

#[test]
fn there_are_only_so_many_names() {
    let mut peer = Peer::sotw(&[]);
    let many: Vec<String> = (0..=NAMES).map(|name| name.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let request = |names: &[&str]| sotw(names, "");
    let ended = peer.exchange.request(Endpoint, request(&many));
    assert_eq!(ended, Err(Violation::TooManyNames { limit: NAMES }));
    let fits = peer.exchange.request(Endpoint, request(&many[1..]));
    assert_eq!(fits, Ok(Heard::Asked));
}
