//! Tests that a rejected resource is not sent again until it has changed. X05.

use super::*;
use crate::server::fixtures::{clusters, endpoints, listeners};

#[test]
fn rejected_clusters_wait_for_other_content() {
    let mut peer = Peer::sotw(&[clusters(&["a=bad", "b=1"])]);
    peer.want(Cluster, &[]);
    assert_eq!(peer.reject(Cluster, &[]), [""; 0]);
    assert_eq!(peer.pass(PATIENCE * 2), [""; 0]);
    assert_eq!(
        peer.publish(&[clusters(&["a=bad", "b=1"]), listeners(&["l=1"])]),
        [""; 0]
    );
    let mended = [clusters(&["a=2", "b=1"])];
    assert_eq!(peer.publish(&mended), ["cds a=2 b=1"]);
}

#[test]
fn a_rejection_can_change_the_subscription() {
    let mut peer = Peer::sotw(&[endpoints(&["a=bad", "b=1"])]);
    peer.want(Endpoint, &["a"]);
    assert_eq!(peer.reject(Endpoint, &["a", "b"]), ["eds b=1"]);
}

/// A client reports a rejection once; later requests have the same nonce, and concern only the
/// subscription.
#[test]
fn what_was_rejected_stays_rejected() {
    let mut peer = Peer::sotw(&[listeners(&["a=bad", "b=1"])]);
    peer.want(Listener, &["*"]);
    peer.reject(Listener, &["*"]);
    let nonce = peer.nonce(Listener);
    let (heard, replies) = peer.say(Listener, sotw(&["b"], &nonce));
    assert_eq!((heard, replies), (Heard::Asked, vec!["lds b=1".to_owned()]));
}

/// A rejection applies to the whole response in both protocols, so the good resources must be sent again
/// once the bad one is corrected.
#[test]
fn what_was_rejected_for_its_company_comes_after_the_mended() {
    for protocol in [StreamProtocol::Sotw, StreamProtocol::Delta] {
        let mut peer = Peer::new(
            protocol,
            Subscription::Separate,
            &[endpoints(&["a=bad", "b=1", "c=1"])],
        );
        let names = ["a", "b", "c"];
        let begin = match protocol {
            StreamProtocol::Sotw => peer.want(Endpoint, &names),
            StreamProtocol::Delta => peer.change(Endpoint, &names),
        };
        let again: &[&str] = match protocol {
            StreamProtocol::Sotw => &names,
            StreamProtocol::Delta => &[],
        };
        assert_eq!(begin, ["eds a=bad b=1 c=1"]);
        assert_eq!(peer.reject(Endpoint, again), [""; 0]);
        // A good one is accepted, although the bad one is not corrected.
        let next = [endpoints(&["a=bad", "b=2", "c=1"])];
        assert_eq!(peer.publish(&next), ["eds b=2"]);
        // Something was corrected, as far as known; it turns out that it was not this.
        assert_eq!(peer.accept(Endpoint, again), ["eds a=bad c=1"]);
        assert_eq!(peer.reject(Endpoint, again), [""; 0]);
        let next = [endpoints(&["a=2", "b=2", "c=1"])];
        assert_eq!(peer.publish(&next), ["eds a=2"]);
        assert_eq!(peer.accept(Endpoint, again), ["eds c=1"]);
        assert_eq!(peer.accept(Endpoint, again), [""; 0]);
    }
}

#[test]
fn the_rest_is_not_tried_again_while_the_mended_is_rejected_as_well() {
    let mut peer = Peer::delta(&[clusters(&["a=bad", "b=1"])]);
    peer.change(Cluster, &[]);
    peer.reject(Cluster, &[]);
    let next = [clusters(&["a=worse", "b=1"])];
    assert_eq!(peer.publish(&next), ["cds a=worse"]);
    assert_eq!(peer.reject(Cluster, &[]), [""; 0]);
    let next = [clusters(&["a=2", "b=1"])];
    assert_eq!(peer.publish(&next), ["cds a=2"]);
    assert_eq!(peer.accept(Cluster, &[]), ["cds b=1"]);
}

#[test]
fn who_lets_go_of_one_that_was_rejected_is_sent_the_rest() {
    let mut peer = Peer::delta(&[endpoints(&["a=bad", "b=1"])]);
    peer.change(Endpoint, &["a", "b"]);
    peer.reject(Endpoint, &[]);
    assert_eq!(peer.change(Endpoint, &["-a"]), ["eds b=1"]);
}

#[test]
fn content_that_is_back_to_what_the_client_has_is_sent() {
    let mut peer = Peer::sotw(&[clusters(&["a=1"])]);
    peer.want(Cluster, &[]);
    peer.accept(Cluster, &[]);
    assert_eq!(peer.publish(&[clusters(&["a=bad"])]), ["cds a=bad"]);
    peer.reject(Cluster, &[]);
    assert_eq!(peer.publish(&[clusters(&["a=1"])]), ["cds a=1"]);
}

/// A rejected and removed resource is not kept: the client does not have it and would not accept it.
#[test]
fn what_was_rejected_and_is_gone_is_not_kept() {
    let mut peer = Peer::new(
        StreamProtocol::Sotw,
        Subscription::Separate,
        &[clusters(&["a=1"])],
    );
    peer.want(Cluster, &[]);
    peer.accept(Cluster, &[]);
    let next = [clusters(&["a=1", "b=bad"])];
    assert_eq!(peer.publish(&next), ["cds a=1 b=bad"]);
    peer.reject(Cluster, &[]);
    assert_eq!(peer.publish(&[clusters(&["c=1"])]), ["cds c=1 a=1"]);
    peer.accept(Cluster, &[]);
    assert_eq!(peer.pass(GRACE), ["cds c=1"]);
}

/// A new client gets resources that others may still need. If it rejects them, it gets the rest.
#[test]
fn what_is_kept_for_others_harms_nobody() {
    let mut peer = Peer::new(
        StreamProtocol::Sotw,
        Subscription::Separate,
        &[clusters(&["a=1", "b=bad"])],
    );
    peer.publish(&[clusters(&["a=1"])]);
    assert_eq!(peer.want(Cluster, &[]), ["cds a=1 b=bad"]);
    assert_eq!(peer.reject(Cluster, &[]), ["cds a=1"]);
    assert_eq!(peer.accept(Cluster, &[]), [""; 0]);
    assert_eq!(peer.publish(&[clusters(&["a=2"])]), ["cds a=2"]);
}
