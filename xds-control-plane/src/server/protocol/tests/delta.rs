//! The incremental protocol.

use super::*;
use crate::server::fixtures::{clusters, endpoints, resource, routes};

fn version(name: &str, content: &str) -> Option<Version> {
    Some(resource(name, content).version())
}

#[test]
fn a_first_request_without_names_asks_for_all() {
    let mut peer = Peer::delta(&[clusters(&["a=1", "b=1"])]);
    assert_eq!(peer.change(Cluster, &[]), ["cds a=1 b=1"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.publish(&[clusters(&["a=1", "b=2"])]), ["cds b=2"]);
}

#[test]
fn the_wildcard_asks_for_all() {
    let mut peer = Peer::delta(&[clusters(&["a=1", "b=1"])]);
    assert_eq!(peer.change(Cluster, &["*"]), ["cds a=1 b=1"]);
}

#[test]
fn no_names_are_no_wildcard_for_endpoints() {
    let mut peer = Peer::delta(&[endpoints(&["a=1"])]);
    assert_eq!(peer.change(Endpoint, &[]), [""; 0]);
    assert_eq!(peer.publish(&[endpoints(&["a=2"])]), [""; 0]);
}

#[test]
fn that_there_is_no_cluster_is_said_once() {
    let mut peer = Peer::delta(&[]);
    assert_eq!(peer.change(Cluster, &[]), ["cds"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.publish(&[clusters(&["a=1"])]), ["cds a=1"]);
}

#[test]
fn nothing_is_sent_before_there_is_something_to_serve() {
    let mut peer = Peer::early(StreamProtocol::Delta, Subscription::Aggregated);
    assert_eq!(peer.change(Cluster, &[]), [""; 0]);
    assert_eq!(peer.change(Endpoint, &["a", "none"]), [""; 0]);
    let first = [clusters(&["a=1"]), endpoints(&["a=1"])];
    assert_eq!(peer.publish(&first), ["cds a=1", "eds a=1 -none"]);
}

#[test]
fn a_name_that_does_not_exist_is_told_so_and_sent_later() {
    let mut peer = Peer::delta(&[]);
    assert_eq!(peer.change(Endpoint, &["a"]), ["eds -a"]);
    peer.accept(Endpoint, &[]);
    assert_eq!(peer.publish(&[endpoints(&["a=1", "b=1"])]), ["eds a=1"]);
    peer.accept(Endpoint, &[]);
    assert_eq!(peer.publish(&[]), ["eds -a"]);
    peer.accept(Endpoint, &[]);
    assert_eq!(peer.publish(&[]), [""; 0]);
}

/// X16.
#[test]
fn one_change_among_a_thousand_is_one_resource() {
    let numbered = |changed: usize| -> Vec<String> {
        let content = |number| if number == changed { 2 } else { 1 };
        (0..1000)
            .map(|number| format!("c{number}={}", content(number)))
            .collect()
    };
    let parts = |texts: &[String]| {
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        [clusters(&texts), endpoints(&texts[..NAMES])]
    };
    let mut peer = Peer::delta(&parts(&numbered(1000)));
    assert_eq!(peer.change(Cluster, &[]).len(), 1);
    assert_eq!(peer.last(Cluster).resources.len(), 1000);
    peer.accept(Cluster, &[]);
    assert_eq!(peer.publish(&parts(&numbered(700))), ["cds c700=2"]);
}

/// X09.
#[test]
fn who_reconnects_is_sent_what_is_different() {
    let parts = [clusters(&["same=1", "changed=2", "new=1", "foreign=1"])];
    let initial = [
        ("same", version("same", "1")),
        ("changed", version("changed", "1")),
        ("gone", version("gone", "1")),
        ("foreign", None),
    ];
    let mut peer = Peer::delta(&parts);
    let (_, replies) = peer.say(Cluster, delta(&[], &initial));
    assert_eq!(replies, ["cds changed=2 foreign=1 new=1 -gone"]);
}

#[test]
fn who_reconnects_with_names_is_sent_what_is_different_of_them() {
    let parts = [endpoints(&["same=1", "changed=2", "other=1"])];
    let initial = [
        ("same", version("same", "1")),
        ("changed", version("changed", "1")),
        ("gone", version("gone", "1")),
        ("other", version("other", "0")),
    ];
    let mut peer = Peer::delta(&parts);
    let names = ["same", "changed", "gone", "none"];
    let (_, replies) = peer.say(Endpoint, delta(&names, &initial));
    assert_eq!(replies, ["eds changed=2 -gone -none"]);
}

#[test]
fn who_reconnects_with_all_that_there_is_is_sent_nothing() {
    let mut peer = Peer::delta(&[clusters(&["a=1"])]);
    let (_, replies) = peer.say(Cluster, delta(&[], &[("a", version("a", "1"))]));
    assert_eq!(replies, [""; 0]);
    assert_eq!(peer.publish(&[clusters(&["a=2"])]), ["cds a=2"]);
}

/// X10.
#[test]
fn who_subscribes_again_is_sent_it_again() {
    let mut peer = Peer::delta(&[endpoints(&["a=1", "b=1"])]);
    peer.change(Endpoint, &["a", "b"]);
    peer.accept(Endpoint, &[]);
    assert_eq!(peer.change(Endpoint, &["a"]), ["eds a=1"]);
}

#[test]
fn who_unsubscribes_is_sent_nothing_more() {
    let mut peer = Peer::delta(&[endpoints(&["a=1", "b=1"])]);
    peer.change(Endpoint, &["a", "b"]);
    assert_eq!(peer.accept(Endpoint, &["-a", "-unknown"]), [""; 0]);
    let next = [endpoints(&["a=2", "b=2"])];
    assert_eq!(peer.publish(&next), ["eds b=2"]);
}

#[test]
fn who_has_the_wildcard_and_unsubscribes_a_name_is_told_what_is_true_of_it() {
    let mut peer = Peer::delta(&[clusters(&["a=1", "b=1"])]);
    assert_eq!(
        peer.change(Cluster, &["*", "a", "none"]),
        ["cds a=1 b=1 -none"]
    );
    assert_eq!(peer.accept(Cluster, &["-a", "-none"]), ["cds a=1 -none"]);
    peer.accept(Cluster, &[]);
    // Both are as with the wildcard alone.
    assert_eq!(
        peer.publish(&[clusters(&["a=2", "b=1", "none=1"])]),
        ["cds a=2 none=1"]
    );
}

#[test]
fn who_drops_the_wildcard_keeps_names() {
    let mut peer = Peer::delta(&[clusters(&["a=1", "b=1"])]);
    peer.change(Cluster, &["*", "a"]);
    assert_eq!(peer.accept(Cluster, &["-*"]), [""; 0]);
    let next = [clusters(&["a=2", "b=2"])];
    assert_eq!(peer.publish(&next), ["cds a=2"]);
    peer.accept(Cluster, &[]);
    // And who takes it up again is sent what it let go.
    assert_eq!(peer.change(Cluster, &["*"]), ["cds b=2"]);
}

#[test]
fn subscriptions_count_even_with_a_nonce_that_does_not() {
    let mut peer = Peer::delta(&[endpoints(&["a=1", "b=1"])]);
    peer.change(Endpoint, &["a"]);
    let request = Request {
        nonce: "4711".to_owned(),
        ..delta(&["b"], &[])
    };
    let (heard, replies) = peer.say(Endpoint, request);
    assert_eq!((heard, replies), (Heard::Stale, vec!["eds b=1".to_owned()]));
}

#[test]
fn an_answer_to_an_earlier_response_counts_for_that_one() {
    let mut peer = Peer::delta(&[endpoints(&["a=1", "b=1"])]);
    peer.change(Endpoint, &["a"]);
    let first = peer.last(Endpoint).clone();
    assert_eq!(peer.change(Endpoint, &["b"]), ["eds b=1"]);
    let request = Request {
        nonce: first.nonce.to_string(),
        ..delta(&[], &[])
    };
    assert_eq!(
        peer.say(Endpoint, request).0,
        Heard::Acknowledged(first.version)
    );
    // The later one is still open.
    assert_eq!(peer.publish(&[endpoints(&["a=2", "b=1"])]), [""; 0]);
    assert_eq!(peer.accept(Endpoint, &[]), ["eds a=2"]);
}

#[test]
fn a_content_that_came_back_while_others_waited_is_still_told() {
    let mut peer = Peer::delta(&[endpoints(&["a=1", "b=1"])]);
    peer.change(Endpoint, &["a"]);
    peer.accept(Endpoint, &[]);
    assert_eq!(peer.publish(&[endpoints(&["a=2", "b=1"])]), ["eds a=2"]);
    // Meanwhile b is requested, and sent from a later state, in which a is as at first.
    assert_eq!(peer.publish(&[endpoints(&["a=1", "b=2"])]), [""; 0]);
    assert_eq!(peer.change(Endpoint, &["b"]), ["eds b=2"]);
    assert_eq!(peer.publish(&[endpoints(&["a=1", "b=1"])]), [""; 0]);
    assert_eq!(peer.accept(Endpoint, &[]), ["eds a=1 b=1"]);
}

#[test]
fn a_route_that_is_gone_is_told_so() {
    let mut peer = Peer::delta(&[routes(&["r=1", "s=1"])]);
    peer.change(Route, &["r", "s"]);
    peer.accept(Route, &[]);
    assert_eq!(peer.publish(&[routes(&["s=1"])]), ["rds -r"]);
}

#[test]
fn there_are_only_so_many_names() {
    let mut peer = Peer::delta(&[]);
    for name in 0..NAMES {
        let (heard, _) = peer.say(Endpoint, delta(&[&name.to_string()], &[]));
        assert_eq!(heard, Heard::Asked);
    }
    let (heard, _) = peer.say(Endpoint, delta(&["0", "1"], &[]));
    assert_eq!(heard, Heard::Asked);
    let ended = peer.exchange.request(Endpoint, delta(&["more"], &[]));
    assert_eq!(ended, Err(Violation::TooManyNames { limit: NAMES }));
    // A reconnecting client names its resources and its subscription, and they are the same.
    peer.reconnect();
    let names: Vec<String> = (0..NAMES).map(|name| name.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let initial: Vec<_> = names.iter().map(|name| (*name, None)).collect();
    let (heard, _) = peer.say(Endpoint, delta(&names, &initial));
    assert_eq!(heard, Heard::Asked);
}
