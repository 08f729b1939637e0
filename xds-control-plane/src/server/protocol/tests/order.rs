//! Make before break.

use super::*;
use crate::server::fixtures::{clusters, endpoints, listeners, routes, routing};

/// An Envoy that has taken everything in.
pub(super) fn settled(protocol: StreamProtocol, parts: &[Part]) -> Peer {
    let mut peer = Peer::new(protocol, Subscription::Aggregated, parts);
    begin(&mut peer);
    peer
}

fn begin(peer: &mut Peer) {
    match peer.protocol {
        StreamProtocol::Sotw => {
            peer.want(Cluster, &[]);
            peer.want(Endpoint, &["a", "b"]);
            peer.accept(Cluster, &[]);
            peer.accept(Endpoint, &["a", "b"]);
            peer.want(Listener, &[]);
            peer.want(Route, &["r"]);
            peer.accept(Listener, &[]);
            peer.accept(Route, &["r"]);
        }
        StreamProtocol::Delta => {
            peer.change(Cluster, &[]);
            peer.change(Endpoint, &["a", "b"]);
            peer.accept(Cluster, &[]);
            peer.accept(Endpoint, &[]);
            peer.change(Listener, &[]);
            peer.change(Route, &["r"]);
            peer.accept(Listener, &[]);
            peer.accept(Route, &[]);
        }
    }
}

pub(super) fn again(
    protocol: StreamProtocol,
    names: &'static [&'static str],
) -> &'static [&'static str] {
    match protocol {
        StreamProtocol::Sotw => names,
        StreamProtocol::Delta => &[],
    }
}

pub(super) fn both() -> [Part; 4] {
    [
        clusters(&["a=1", "b=1"]),
        endpoints(&["a=1", "b=1"]),
        listeners(&["l=1"]),
        routes(&["r=a+b"]),
    ]
}

/// X14.
#[test]
fn a_removed_service_leaves_the_routes_and_then_the_clusters() {
    for (protocol, removal) in [
        (StreamProtocol::Sotw, "cds a=1"),
        (StreamProtocol::Delta, "cds -b"),
    ] {
        let mut peer = settled(protocol, &both());
        let one = [
            clusters(&["a=1"]),
            endpoints(&["a=1"]),
            listeners(&["l=1"]),
            routes(&["r=a"]),
        ];
        assert_eq!(peer.publish(&one), ["rds r=a"]);
        assert_eq!(peer.accept(Route, again(protocol, &["r"])), [removal]);
        assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
        // Unsubscribed endpoints are removed when all clients have released the cluster.
        let left = peer.pass(GRACE);
        match protocol {
            StreamProtocol::Sotw => assert_eq!(left, [""; 0]),
            StreamProtocol::Delta => assert_eq!(left, ["eds -b"]),
        }
    }
}

#[test]
fn what_comes_and_what_goes_at_once_is_made_before_broken() {
    for (protocol, union, removal) in [
        (StreamProtocol::Sotw, "cds a=1 c=1 b=1", "cds a=1 c=1"),
        (StreamProtocol::Delta, "cds c=1", "cds -b"),
    ] {
        let mut peer = settled(protocol, &both());
        let other = [
            clusters(&["a=1", "c=1"]),
            endpoints(&["a=1", "c=1"]),
            listeners(&["l=2"]),
            routes(&["r=a+c"]),
        ];
        assert_eq!(peer.publish(&other), [union]);
        let asked = match protocol {
            StreamProtocol::Sotw => peer.want(Endpoint, &["a", "b", "c"]),
            StreamProtocol::Delta => peer.change(Endpoint, &["c"]),
        };
        assert_eq!(asked, ["eds c=1"]);
        peer.accept(Endpoint, again(protocol, &["a", "b", "c"]));
        // Envoy acknowledges when all clusters are warm.
        assert_eq!(peer.accept(Cluster, &[]), ["lds l=2", "rds r=a+c"]);
        assert_eq!(peer.accept(Route, again(protocol, &["r"])), [""; 0]);
        assert_eq!(peer.accept(Listener, &[]), [removal]);
    }
}

#[test]
fn routes_do_not_wait_for_ever_for_clusters() {
    let mut peer = settled(StreamProtocol::Sotw, &both());
    let other = [
        clusters(&["a=1", "b=1", "c=1"]),
        endpoints(&["a=1", "b=1"]),
        listeners(&["l=1"]),
        routes(&["r=a+b+c"]),
    ];
    assert_eq!(peer.publish(&other), ["cds a=1 b=1 c=1"]);
    assert_eq!(peer.pass(PATIENCE), ["rds r=a+b+c"]);
}

#[test]
fn a_removal_does_not_wait_for_ever_for_routes() {
    for (protocol, removal) in [
        (StreamProtocol::Sotw, &["cds a=1"] as &[&str]),
        (StreamProtocol::Delta, &["cds -b", "eds -b"]),
    ] {
        let mut peer = settled(protocol, &both());
        let one = [
            clusters(&["a=1"]),
            endpoints(&["a=1"]),
            listeners(&["l=1"]),
            routes(&["r=a"]),
        ];
        assert_eq!(peer.publish(&one), ["rds r=a"]);
        // It keeps the routes it has, with the cluster in them.
        assert_eq!(peer.reject(Route, again(protocol, &["r"])), [""; 0]);
        assert_eq!(peer.pass(GRACE / 2), [""; 0]);
        assert_eq!(peer.pass(GRACE / 2), removal);
    }
}

#[test]
fn a_removed_cluster_that_no_route_names_goes_at_once() {
    let mut peer = settled(StreamProtocol::Sotw, &both());
    let one = [
        clusters(&["a=1"]),
        endpoints(&["a=1"]),
        listeners(&["l=1"]),
        routes(&["r=a+b"]),
    ];
    assert_eq!(peer.publish(&one), ["cds a=1"]);
}

#[test]
fn routes_of_others_do_not_hold_a_removal() {
    let mut peer = settled(StreamProtocol::Sotw, &both());
    let one = [
        clusters(&["a=1"]),
        endpoints(&["a=1"]),
        listeners(&["l=1"]),
        routes(&["r=a+b", "other=1"]),
    ];
    assert_eq!(peer.publish(&one), ["cds a=1"]);
}

#[test]
fn who_has_let_go_of_a_cluster_does_not_get_it_back_with_the_next_change() {
    for (protocol, next) in [
        (StreamProtocol::Sotw, "cds a=2"),
        (StreamProtocol::Delta, "cds a=2"),
    ] {
        let mut peer = settled(protocol, &both());
        let one = |cluster: &str, route: &str| {
            [
                clusters(&[cluster]),
                endpoints(&["a=1"]),
                listeners(&["l=1"]),
                routes(&[route]),
            ]
        };
        peer.publish(&one("a=1", "r=a"));
        peer.accept(Route, again(protocol, &["r"]));
        peer.accept(Cluster, &[]);
        let replies = peer.publish(&one("a=2", "r=new"));
        assert_eq!(replies, [next, "eds a=1"]);
    }
}

/// Streams of one type cannot know when the routes are removed.
#[test]
fn a_separate_stream_keeps_removed_clusters_for_a_while() {
    for (protocol, removal) in [
        (StreamProtocol::Sotw, "cds a=1"),
        (StreamProtocol::Delta, "cds -b"),
    ] {
        let mut peer = Peer::new(
            protocol,
            Subscription::Separate,
            &[clusters(&["a=1", "b=1"])],
        );
        match protocol {
            StreamProtocol::Sotw => peer.want(Cluster, &[]),
            StreamProtocol::Delta => peer.change(Cluster, &[]),
        };
        peer.accept(Cluster, &[]);
        assert_eq!(peer.publish(&[clusters(&["a=1"])]), [""; 0]);
        assert_eq!(peer.pass(GRACE / 2), [""; 0]);
        assert_eq!(peer.pass(GRACE / 2), [removal]);
    }
}

#[test]
fn who_reconnects_while_a_cluster_leaves_may_still_need_it() {
    let mut peer = settled(StreamProtocol::Sotw, &both());
    let one = [
        clusters(&["a=1"]),
        endpoints(&["a=1"]),
        listeners(&["l=1"]),
        routes(&["r=a"]),
    ];
    peer.publish(&one);
    peer.reconnect();
    assert_eq!(peer.want(Cluster, &[]), ["cds a=1 b=1"]);
    assert_eq!(peer.want(Endpoint, &["a", "b"]), ["eds a=1 b=1"]);
    peer.accept(Cluster, &[]);
    peer.want(Listener, &[]);
    assert_eq!(peer.want(Route, &["r"]), ["rds r=a"]);
    peer.accept(Listener, &[]);
    assert_eq!(peer.accept(Route, &["r"]), ["cds a=1"]);
}

/// 5.4 of the protocol notes: a changed cluster warms again, and waits for endpoints that did not change.
#[test]
fn endpoints_follow_a_change_of_their_cluster() {
    for (protocol, expected) in [
        (StreamProtocol::Sotw, ["cds a=2 b=1", "eds a=1"]),
        (StreamProtocol::Delta, ["cds a=2", "eds a=1"]),
    ] {
        let mut peer = settled(protocol, &both());
        let next = [
            clusters(&["a=2", "b=1"]),
            endpoints(&["a=1", "b=1"]),
            listeners(&["l=1"]),
            routes(&["r=a+b"]),
        ];
        assert_eq!(peer.publish(&next), expected);
    }
}

#[test]
fn additions_go_out_in_order() {
    let mut peer = Peer::sotw(&[]);
    peer.want(Route, &["r"]);
    peer.want(Listener, &[]);
    peer.want(Endpoint, &["a"]);
    peer.want(Cluster, &[]);
    peer.accept(Listener, &[]);
    peer.accept(Cluster, &[]);
    let all = [
        clusters(&["a=1"]),
        endpoints(&["a=1"]),
        listeners(&["l=1"]),
        routes(&["r=a"]),
    ];
    assert_eq!(peer.publish(&all), ["cds a=1", "eds a=1"]);
    assert_eq!(peer.accept(Cluster, &[]), ["lds l=1", "rds r=a"]);
}

#[test]
fn a_rejected_cluster_that_is_withdrawn_holds_nothing() {
    for protocol in [StreamProtocol::Sotw, StreamProtocol::Delta] {
        let mut peer = settled(protocol, &both());
        let mut next = both();
        next[0] = clusters(&["a=1", "b=1", "c=bad"]);
        next[3] = routing("r", &["a", "b", "c"]);
        peer.publish(&next);
        assert_eq!(peer.reject(Cluster, &[]), ["rds r=[a b 503]"]);
        peer.accept(Route, again(protocol, &["r"]));
        let mut next = both();
        next[3] = routing("r", &["b"]);
        match protocol {
            StreamProtocol::Sotw => {
                assert_eq!(peer.publish(&next), ["cds a=1 b=1"]);
                assert_eq!(peer.accept(Cluster, &[]), ["rds r=[b]"]);
            }
            StreamProtocol::Delta => {
                assert_eq!(peer.publish(&next), ["rds r=[b]"]);
                assert_eq!(peer.accept(Route, &[]), ["cds -c"]);
            }
        }
    }
}

#[test]
fn a_rejected_change_of_a_cluster_that_the_client_has_holds_no_routes() {
    for protocol in [StreamProtocol::Sotw, StreamProtocol::Delta] {
        let mut peer = settled(protocol, &both());
        let mut next = both();
        next[0] = clusters(&["a=bad", "b=1"]);
        next[3] = routes(&["r=b+a"]);
        peer.publish(&next);
        assert_eq!(peer.reject(Cluster, &[]), ["rds r=b+a"]);
    }
}

/// A client of this project accepts the good resources of a response.
#[test]
fn a_client_that_accepts_in_part_has_the_routes_of_the_rest() {
    let mut peer = settled(StreamProtocol::Delta, &both());
    peer.accept_in_part();
    let mut next = both();
    next[0] = clusters(&["a=1", "b=1", "c=bad", "d=1"]);
    next[3] = routes(&["r=a+b+c+d"]);
    assert_eq!(peer.publish(&next), ["cds c=bad d=1"]);
    assert_eq!(peer.reject(Cluster, &[]), ["rds r=a+b+c+d"]);
}
