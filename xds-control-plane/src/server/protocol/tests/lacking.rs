//! Tests of clusters that a client has rejected and therefore lacks: only the routes to them are withheld.

use super::order::{again, both, settled};
use super::*;
use crate::server::fixtures::{clusters, endpoints, listeners, routing};

const BOTH: [StreamProtocol; 2] = [StreamProtocol::Sotw, StreamProtocol::Delta];

/// Returns resources with a new service `d`, and with a canary and a branch of `a` in the cluster `c`.
fn with_c(c: &str) -> [Part; 4] {
    [
        clusters(&["a=1", "b=1", c, "d=1"]),
        endpoints(&["a=1", "b=1"]),
        listeners(&["l=2"]),
        routing("r", &["c+a:c", "b", "d", "c"]),
    ]
}

/// Returns an Envoy that has rejected `c` with this message.
fn refusing(protocol: StreamProtocol, message: &str) -> (Peer, Vec<String>) {
    let mut peer = settled(protocol, &both());
    assert_eq!(peer.publish(&with_c("c=bad")).len(), 1);
    let replies = peer.reject_saying(Cluster, &[], message);
    (peer, replies)
}

#[test]
fn what_leads_to_a_rejected_cluster_stays_away_and_the_rest_goes_out() {
    let said = "Error adding/updating cluster(s) c: no such extension";
    for protocol in BOTH {
        let (mut peer, replies) = refusing(protocol, said);
        assert!(peer.lacks_clusters());
        // It has taken `d`, which came with `c`.
        assert_eq!(replies, ["lds l=2", "rds r=[a b d 503]"], "{protocol:?}");
        peer.accept(Listener, &[]);
        assert_eq!(peer.accept(Route, again(protocol, &["r"])), [""; 0]);
        // What changes beside it changes.
        let mut next = with_c("c=bad");
        next[3] = routing("r", &["c+a:c", "d:b"]);
        assert_eq!(peer.publish(&next), ["rds r=[a d:b]"], "{protocol:?}");
        peer.accept(Route, again(protocol, &["r"]));
        // Once corrected, it is served as to all clients.
        next[0] = clusters(&["a=1", "b=1", "c=2", "d=1"]);
        let replies = peer.publish(&next);
        assert!(replies[0].contains("c=2"), "{replies:?}");
        let mut replies = peer.accept(Cluster, &[]);
        if protocol == StreamProtocol::Delta {
            // Resources that were rejected with it, as far as the next response can show.
            assert_eq!(replies, ["cds d=1"]);
            replies = peer.accept(Cluster, &[]);
        }
        assert_eq!(replies, ["rds r=[c+a:c d:b]"], "{protocol:?}");
        assert!(!peer.lacks_clusters());
    }
}

#[test]
fn of_a_response_that_is_rejected_as_a_whole_nothing_new_is_there() {
    for protocol in BOTH {
        let (mut peer, replies) = refusing(protocol, "Proto constraint validation failed");
        assert_eq!(replies, ["lds l=2", "rds r=[a b 503 503]"], "{protocol:?}");
        // Endpoints of what it has move on.
        let mut moved = with_c("c=bad");
        moved[1] = endpoints(&["a=2", "b=1"]);
        assert_eq!(peer.publish(&moved), ["eds a=2"], "{protocol:?}");
    }
}

/// A cluster is removed when the routes to it are, independent of other rejections.
#[test]
fn a_removal_waits_for_routes_and_no_longer() {
    let said = "Error adding/updating cluster(s) c: no such extension";
    for (protocol, removal) in [
        (StreamProtocol::Sotw, "cds a=1 c=bad d=1"),
        (StreamProtocol::Delta, "cds -b"),
    ] {
        let (mut peer, _) = refusing(protocol, said);
        peer.accept(Listener, &[]);
        peer.accept(Route, again(protocol, &["r"]));
        let next = [
            clusters(&["a=1", "c=bad", "d=1"]),
            endpoints(&["a=1"]),
            listeners(&["l=2"]),
            routing("r", &["c+a:c", "d", "c"]),
        ];
        let replies = peer.publish(&next);
        let without_removal = replies.iter().filter(|reply| reply.starts_with("rds"));
        assert_eq!(without_removal.collect::<Vec<_>>(), ["rds r=[a d 503]"]);
        let before: String = replies.concat();
        assert!(!before.contains("-b"), "{replies:?}");
        let replies = peer.accept(Route, again(protocol, &["r"]));
        assert_eq!(replies, [removal], "{protocol:?}");
    }
}

#[test]
fn an_envoy_that_begins_gets_the_same_as_others() {
    for protocol in BOTH {
        let mut peer = Peer::new(protocol, Subscription::Aggregated, &with_c("c=bad"));
        match protocol {
            StreamProtocol::Sotw => peer.want(Cluster, &[]),
            StreamProtocol::Delta => peer.change(Cluster, &[]),
        };
        let said = "Error adding/updating cluster(s) c: no such extension";
        peer.reject_saying(Cluster, &[], said);
        let replies = match protocol {
            StreamProtocol::Sotw => peer.want(Route, &["r"]),
            StreamProtocol::Delta => peer.change(Route, &["r"]),
        };
        assert_eq!(replies, ["rds r=[a b d 503]"], "{protocol:?}");
    }
}

/// Resources from an earlier stream are not removed from a reconnecting client.
#[test]
fn who_reconnects_with_what_it_has_keeps_its_routes() {
    let before = [
        clusters(&["a=1", "b=1"]),
        endpoints(&["a=1", "b=1"]),
        listeners(&["l=1"]),
        routing("r", &["a", "b"]),
    ];
    for known in [true, false] {
        for protocol in BOTH {
            let mut peer = Peer::new(protocol, Subscription::Aggregated, &before);
            let version = known.then(|| peer.cluster_version("a"));
            let request = match protocol {
                StreamProtocol::Sotw => {
                    let mut request = sotw(&[], "");
                    let all = peer.clusters_version();
                    let version = Some(if known {
                        all
                    } else {
                        Version::of([b"other".as_slice()])
                    });
                    request.wants = Wants::Sotw {
                        names: Vec::new(),
                        version,
                    };
                    request
                }
                StreamProtocol::Delta => delta(&["*"], &[("a", version), ("b", version)]),
            };
            peer.say(Cluster, request);
            if !known {
                peer.reject(Cluster, &[]);
            }
            match protocol {
                StreamProtocol::Sotw => peer.want(Route, &["r"]),
                StreamProtocol::Delta => peer.change(Route, &["r"]),
            };
            peer.accept(Route, again(protocol, &["r"]));
            let mut next = before.clone();
            next[0] = clusters(&["a=1", "b=1", "c=bad"]);
            peer.publish(&next);
            assert_eq!(peer.reject(Cluster, &[]), [""; 0], "{protocol:?} {known}");
            next[3] = routing("r", &["b", "a"]);
            assert_eq!(peer.publish(&next), ["rds r=[b a]"], "{protocol:?} {known}");
        }
    }
}

/// A listener that refers to a rejected cluster directly cannot do without it.
#[test]
fn a_listener_that_names_what_was_rejected_waits_with_its_like() {
    for protocol in BOTH {
        let mut peer = settled(protocol, &both());
        let next = [
            clusters(&["a=1", "b=1", "c=bad"]),
            endpoints(&["a=1", "b=1"]),
            listeners(&["l=\u{1}c"]),
            routing("r", &["b", "c"]),
        ];
        peer.publish(&next);
        assert_eq!(peer.reject(Cluster, &[]), ["rds r=[b 503]"], "{protocol:?}");
    }
}
