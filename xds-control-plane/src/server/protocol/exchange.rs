//! One stream: all its types, and the order of their changes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::channel::Channel;
use super::{Heard, Reply, Request, Scope, StreamProtocol, Violation};
use crate::server::node_view::{NodeView, Served, names_any};
use crate::snapshot::{ResourceType, Subscription};

/// The limits of a stream, and its time limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeOptions {
    /// The time for which changes wait for the client to acknowledge or reject the last response.
    pub(crate) patience: Duration,
    /// Maximum number of names of a subscription, for each type.
    pub(crate) names: usize,
}

/// The state of one stream.
///
/// Responses to requests are sent at once. Changes are pushed one response at a time for each type, so that
/// a slow client gets the newest state and none of those before. On an aggregated stream, changes are made
/// before the parts that they replace are removed (make before break):
///
/// - Clusters come first, then endpoints, including those of changed clusters: Envoy warms these again and
///   waits.
/// - Listeners and routes wait until the clusters have been acknowledged. Envoy acknowledges when all are
///   warm.
/// - A client that has rejected a cluster, and lacks it, gets routes without those to it, which would be
///   answered with 503: a branch or a canary falls back to the rest of its virtual host. Listeners wait if
///   one of them names such a cluster. A client of this project handles rejected clusters itself, and gets
///   everything.
/// - A removed cluster stays until the client has acknowledged routes and listeners without it, or its time
///   is over.
#[derive(Debug)]
pub(crate) struct Exchange {
    protocol: StreamProtocol,
    subscription: Subscription,
    options: ExchangeOptions,
    view: Option<Arc<NodeView>>,
    channels: [Option<Channel>; ResourceType::MAKE_BEFORE_BREAK.len()],
    nonce: u64,
    accepts_in_part: bool,
}

impl Exchange {
    pub(crate) fn new(
        protocol: StreamProtocol,
        subscription: Subscription,
        options: ExchangeOptions,
    ) -> Self {
        Self {
            protocol,
            subscription,
            options,
            view: None,
            channels: Default::default(),
            nonce: 0,
            accepts_in_part: false,
        }
    }

    /// Records that the client accepts the good resources of a response that it rejects in part.
    pub(crate) fn accept_in_part(&mut self) {
        self.accepts_in_part = true;
    }

    pub(crate) fn protocol(&self) -> StreamProtocol {
        self.protocol
    }

    /// The current view.
    pub(crate) fn view(&self) -> Option<&Arc<NodeView>> {
        self.view.as_ref()
    }

    /// Handles a client's request for a type.
    pub(crate) fn request(
        &mut self,
        resource_type: ResourceType,
        request: Request,
    ) -> Result<Heard, Violation> {
        self.channels[resource_type as usize]
            .get_or_insert_with(|| Channel::new(self.protocol, resource_type))
            .request(request, self.options.names)
    }

    /// Responds from `view` from now on.
    pub(crate) fn publish(&mut self, view: Arc<NodeView>) {
        self.view = Some(view);
    }

    /// Returns the responses to send now, in this order.
    pub(crate) fn replies(&mut self, now: Instant) -> Vec<Reply> {
        let Some(view) = self.view.clone() else {
            return Vec::new();
        };
        let mut replies = Vec::new();
        let settled = self.has_left_clusters(&view);
        for resource_type in ResourceType::MAKE_BEFORE_BREAK {
            self.reply(&view, resource_type, now, &mut replies);
        }
        // Routes without changes to send have been checked only now.
        if !settled && self.has_left_clusters(&view) {
            self.reply(&view, ResourceType::Cluster, now, &mut replies);
        }
        replies
    }

    /// Returns the time at which to call [`replies`](Self::replies) even without an event.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.channels
            .iter()
            .flatten()
            .filter_map(|channel| channel.waits_until(self.options.patience, now))
            .min()
    }

    /// Returns true if all resources of a type are subscribed to, with the subscribed names.
    pub(crate) fn subscribed(
        &self,
        resource_type: ResourceType,
    ) -> Option<(bool, impl Iterator<Item = &Arc<str>>)> {
        let channel = self.channels[resource_type as usize].as_ref()?;
        Some((channel.is_wildcard(), channel.names()))
    }

    /// Number of names with state, over all types.
    pub(crate) fn name_count(&self) -> usize {
        self.channels
            .iter()
            .flatten()
            .map(Channel::name_count)
            .sum()
    }

    fn reply(
        &mut self,
        view: &NodeView,
        resource_type: ResourceType,
        now: Instant,
        replies: &mut Vec<Reply>,
    ) {
        let scope = if self.must_wait(view, resource_type, now) {
            Scope::Asked
        } else {
            Scope::All
        };
        let keep = if self.has_left_clusters(view) {
            None
        } else {
            view.retained(resource_type)
        };
        let served = self.served(view, resource_type);
        let nonce = self.nonce + 1;
        let Some(channel) = &mut self.channels[resource_type as usize] else {
            return;
        };
        let Some((reply, changed)) = channel.reply(&served, keep, scope, nonce, now) else {
            return;
        };
        self.nonce = nonce;
        replies.push(reply);
        if resource_type == ResourceType::Cluster
            && let Some(endpoints) = &mut self.channels[ResourceType::Endpoint as usize]
        {
            endpoints.forget(&changed);
        }
    }

    fn must_wait(&self, view: &NodeView, resource_type: ResourceType, now: Instant) -> bool {
        let waits = |resource_type: ResourceType| {
            self.channels[resource_type as usize]
                .as_ref()
                .is_some_and(|channel| channel.waits_until(self.options.patience, now).is_some())
        };
        match resource_type {
            ResourceType::Cluster | ResourceType::Endpoint => waits(resource_type),
            ResourceType::Route => waits(resource_type) || waits(ResourceType::Cluster),
            ResourceType::Listener => {
                waits(resource_type)
                    || waits(ResourceType::Cluster)
                    || self.listeners_name(view, &self.lacking_clusters(view))
            }
        }
    }

    /// Returns the resources for this client, which may be fewer than for others.
    fn served<'v>(&self, view: &'v NodeView, resource_type: ResourceType) -> Cow<'v, Served> {
        let served = view.served(resource_type, self.subscription);
        let lacking = match resource_type {
            ResourceType::Route => self.lacking_clusters(view),
            ResourceType::Cluster | ResourceType::Endpoint | ResourceType::Listener => {
                BTreeSet::new()
            }
        };
        if lacking.is_empty() {
            Cow::Borrowed(served)
        } else {
            Cow::Owned(served.without_routes_to(&lacking))
        }
    }

    /// Returns true if the client has rejected clusters and lacks them.
    pub(crate) fn lacks_clusters(&self) -> bool {
        (self.view.as_ref()).is_some_and(|view| !self.lacking_clusters(view).is_empty())
    }

    fn lacking_clusters(&self, view: &NodeView) -> BTreeSet<Arc<str>> {
        match &self.channels[ResourceType::Cluster as usize] {
            Some(clusters) if !self.accepts_in_part => {
                clusters.lacking(view.served(ResourceType::Cluster, self.subscription))
            }
            _ => BTreeSet::new(),
        }
    }

    fn listeners_name(&self, view: &NodeView, clusters: &BTreeSet<Arc<str>>) -> bool {
        let listeners = view.served(ResourceType::Listener, self.subscription);
        !clusters.is_empty()
            && (listeners.set().iter()).any(|listener| names_any(listener, clusters))
    }

    /// Returns true if the client is known to refer only to clusters of this view. A stream of one type
    /// cannot know.
    fn has_left_clusters(&self, view: &NodeView) -> bool {
        let settled = |resource_type: ResourceType| {
            self.channels[resource_type as usize]
                .as_ref()
                .map(|channel| channel.is_settled(&self.served(view, resource_type)))
        };
        self.subscription == Subscription::Aggregated
            && settled(ResourceType::Route) == Some(true)
            && settled(ResourceType::Listener) != Some(false)
    }
}
