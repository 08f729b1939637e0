//! Cases of the protocol, as a client sees them.

mod delta;
mod lacking;
mod order;
mod properties;
mod rejections;
mod sotw;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::server::fixtures::{Part, shown_routing, snapshot};
use crate::server::node_view::{Feed, NodeView};
use crate::snapshot::ResourceType::{Cluster, Endpoint, Listener, Route};
use crate::snapshot::Subscription;

pub(super) const GRACE: Duration = Duration::from_secs(30);
pub(super) const LEAD: Duration = Duration::from_secs(3);
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
pub(super) const NAMES: usize = 10;

/// A client, with the server's side of its stream.
pub(super) struct Peer {
    pub(super) protocol: StreamProtocol,
    subscription: Subscription,
    feed: Feed,
    exchange: Exchange,
    pub(super) now: Instant,
    last: BTreeMap<ResourceType, Reply>,
}

impl Peer {
    pub(super) fn new(
        protocol: StreamProtocol,
        subscription: Subscription,
        parts: &[Part],
    ) -> Self {
        let mut peer = Self::early(protocol, subscription);
        assert_eq!(peer.publish(parts), [""; 0]);
        peer
    }

    /// Creates an exchange before there are resources to serve.
    pub(super) fn early(protocol: StreamProtocol, subscription: Subscription) -> Self {
        Self {
            protocol,
            subscription,
            feed: Feed::new(GRACE, LEAD),
            exchange: exchange(protocol, subscription),
            now: Instant::now(),
            last: BTreeMap::new(),
        }
    }

    pub(super) fn sotw(parts: &[Part]) -> Self {
        Self::new(StreamProtocol::Sotw, Subscription::Aggregated, parts)
    }

    pub(super) fn delta(parts: &[Part]) -> Self {
        Self::new(StreamProtocol::Delta, Subscription::Aggregated, parts)
    }

    /// Loses the stream and begins another.
    pub(super) fn reconnect(&mut self) {
        let view = self.exchange.view().cloned();
        self.exchange = exchange(self.protocol, self.subscription);
        self.last.clear();
        if let Some(view) = view {
            self.exchange.publish(view);
        }
    }

    pub(super) fn accept_in_part(&mut self) {
        self.exchange.accept_in_part();
    }

    pub(super) fn publish(&mut self, parts: &[Part]) -> Vec<String> {
        let view = self.feed.publish(snapshot(parts), self.now);
        self.exchange.publish(view);
        self.replies()
    }

    /// Time goes by.
    pub(super) fn pass(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        if let Some(view) = self.feed.expire(self.now) {
            self.exchange.publish(view);
        }
        self.replies()
    }

    /// Subscribes to these names in state of the world, for a type that may have been answered already.
    pub(super) fn want(&mut self, resource_type: ResourceType, names: &[&str]) -> Vec<String> {
        let nonce = self.nonce(resource_type);
        self.say(resource_type, sotw(names, &nonce)).1
    }

    /// Subscribes to these names in the delta protocol, and unsubscribes from those with a dash.
    pub(super) fn change(&mut self, resource_type: ResourceType, names: &[&str]) -> Vec<String> {
        self.say(resource_type, delta(names, &[])).1
    }

    /// Accepts the last response of a type; with state of the world, wanting these names.
    pub(super) fn accept(&mut self, resource_type: ResourceType, names: &[&str]) -> Vec<String> {
        let (heard, replies) = self.judge(resource_type, names, None);
        assert!(matches!(heard, Heard::Acknowledged(_)), "{heard:?}");
        replies
    }

    pub(super) fn reject(&mut self, resource_type: ResourceType, names: &[&str]) -> Vec<String> {
        let (heard, replies) = self.judge(resource_type, names, Some("no"));
        assert!(matches!(heard, Heard::Rejected(_, why) if why == "no"));
        replies
    }

    /// Rejects the last response of a type with that message; in state of the world with a subscription to
    /// these names.
    pub(super) fn reject_saying(
        &mut self,
        resource_type: ResourceType,
        names: &[&str],
        message: &str,
    ) -> Vec<String> {
        self.judge(resource_type, names, Some(message)).1
    }

    pub(super) fn clusters_version(&self) -> Version {
        let view = self.exchange.view().unwrap();
        view.served(Cluster, self.subscription).version()
    }

    pub(super) fn cluster_version(&self, name: &str) -> Version {
        let view = self.exchange.view().unwrap();
        let served = view.served(Cluster, self.subscription);
        served.set().get(name).unwrap().version()
    }

    pub(super) fn lacks_clusters(&self) -> bool {
        self.exchange.lacks_clusters()
    }

    fn judge(
        &mut self,
        resource_type: ResourceType,
        names: &[&str],
        rejection: Option<&str>,
    ) -> (Heard, Vec<String>) {
        let nonce = self.nonce(resource_type);
        let mut request = match self.protocol {
            StreamProtocol::Sotw => sotw(names, &nonce),
            StreamProtocol::Delta => Request {
                nonce,
                ..delta(names, &[])
            },
        };
        request.rejection = rejection.map(str::to_owned);
        self.say(resource_type, request)
    }

    pub(super) fn say(
        &mut self,
        resource_type: ResourceType,
        request: Request,
    ) -> (Heard, Vec<String>) {
        let heard = self.exchange.request(resource_type, request).unwrap();
        (heard, self.replies())
    }

    pub(super) fn nonce(&self, resource_type: ResourceType) -> String {
        let last = self.last.get(&resource_type);
        last.map(|reply| reply.nonce.to_string())
            .unwrap_or_default()
    }

    pub(super) fn last(&self, resource_type: ResourceType) -> &Reply {
        &self.last[&resource_type]
    }

    fn replies(&mut self) -> Vec<String> {
        let replies = self.exchange.replies(self.now);
        assert_eq!(
            self.exchange.replies(self.now),
            [],
            "all that is due goes out at once"
        );
        let shown = replies.iter().map(show).collect();
        for reply in replies {
            self.last.insert(reply.resource_type, reply);
        }
        shown
    }
}

pub(super) fn exchange(protocol: StreamProtocol, subscription: Subscription) -> Exchange {
    let options = ExchangeOptions {
        patience: PATIENCE,
        names: NAMES,
    };
    Exchange::new(protocol, subscription, options)
}

pub(super) fn names(names: &[&str]) -> Vec<Arc<str>> {
    names.iter().copied().map(Arc::from).collect()
}

pub(super) fn sotw(wanted: &[&str], nonce: &str) -> Request {
    Request {
        nonce: nonce.to_owned(),
        rejection: None,
        wants: Wants::Sotw {
            names: names(wanted),
            version: None,
        },
    }
}

/// Names with a dash are unsubscribed from.
pub(super) fn delta(changes: &[&str], initial: &[(&str, Option<Version>)]) -> Request {
    let (unsubscribe, subscribe): (Vec<&str>, Vec<&str>) =
        changes.iter().partition(|name| name.starts_with('-'));
    let unsubscribe: Vec<_> = unsubscribe.iter().map(|name| &name[1..]).collect();
    Request {
        nonce: String::new(),
        rejection: None,
        wants: Wants::Delta {
            subscribe: names(&subscribe),
            unsubscribe: names(&unsubscribe),
            initial: initial
                .iter()
                .map(|(name, version)| (Arc::from(*name), *version))
                .collect(),
        },
    }
}

/// Returns a short form: `cds a=1 b=1 -c`.
fn show(reply: &Reply) -> String {
    let resources = reply.resources.iter().map(|resource| {
        let body = resource.body(Subscription::Aggregated);
        let routing = (reply.resource_type == Route)
            .then(|| shown_routing(body))
            .flatten();
        let content = routing.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        format!(" {}={content}", resource.name())
    });
    let removed = reply.removed.iter().map(|name| format!(" -{name}"));
    format!(
        "{}{}",
        reply.resource_type,
        resources.chain(removed).collect::<String>()
    )
}
