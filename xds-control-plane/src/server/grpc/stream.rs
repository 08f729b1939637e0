//! The driver of a stream's state machine.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Status;

use super::inbound::Inbound;
use super::requests::Requests;
use crate::server::context::Context;
use crate::server::node_view::NodeView;
use crate::server::nodes::{NodeIdentity, Record};
use crate::server::protocol::{Exchange, ExchangeOptions, Heard, Reply};
use crate::server::wire::{Framed, Response};
use crate::snapshot::{ResourceType, Subscription};
use xds_types::ACCEPTS_IN_PART;

/// One stream of a client.
///
/// The writer of responses drives it, so a client that does not read delays only itself: its next response
/// is made from the newest view at that time.
pub(super) struct Conversation<R> {
    context: Arc<Context>,
    record: Record,
    exchange: Exchange,
    subscription: Subscription,
    /// The only type of a stream that is not aggregated.
    only: Option<ResourceType>,
    inbound: Requests<R>,
    views: watch::Receiver<Option<Arc<NodeView>>>,
    stopping: watch::Receiver<bool>,
    unsent: VecDeque<Reply>,
    /// True if an unknown type was requested, which is logged once.
    has_warned: bool,
    /// True if the client lacks clusters that it rejected, which is counted in the metrics.
    withholds: bool,
    key: RandomState,
    /// Fingerprints of the names in the last accepted requests, by type.
    named: [Option<u64>; ResourceType::MAKE_BEFORE_BREAK.len()],
}

/// The next event of a stream.
enum Event<R> {
    Request(R),
    End,
    Failed(Status),
    NodeView,
    Time,
}

impl<R: Inbound> Conversation<R> {
    pub(super) fn new(
        context: Arc<Context>,
        record: Record,
        only: Option<ResourceType>,
        inbound: Requests<R>,
    ) -> Self {
        let subscription = match only {
            Some(_) => Subscription::Separate,
            None => Subscription::Aggregated,
        };
        let options = ExchangeOptions {
            patience: context.options.patience,
            names: context.options.names_per_stream,
        };
        let mut exchange = Exchange::new(R::PROTOCOL, subscription, options);
        let mut views = context.views.clone();
        if let Some(view) = views.borrow_and_update().clone() {
            exchange.publish(view);
        }
        context.metrics.opened(R::PROTOCOL, subscription);
        Self {
            record,
            exchange,
            subscription,
            only,
            inbound,
            views,
            stopping: context.stopping.clone(),
            unsent: VecDeque::new(),
            has_warned: false,
            withholds: false,
            key: RandomState::new(),
            named: [None; ResourceType::MAKE_BEFORE_BREAK.len()],
            context,
        }
    }

    /// The responses, until the client ends the stream or the server stops.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Framed, Status>> + Send {
        stream::unfold(Some(self), |conversation| async move {
            let mut conversation = conversation?;
            match conversation.next().await {
                Ok(Some(response)) => Some((Ok(response), Some(conversation))),
                Ok(None) => None,
                Err(status) => Some((Err(status), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<Option<Framed>, Status> {
        loop {
            if let Some(reply) = self.unsent.pop_front() {
                return self.respond(reply).map(Some);
            }
            let now = Instant::now();
            self.unsent.extend(self.exchange.replies(now));
            self.note_withheld(self.exchange.lacks_clusters());
            if !self.unsent.is_empty() {
                continue;
            }
            match self.event(now).await {
                Event::Request(request) => self.hear(request)?,
                Event::NodeView => {
                    if let Some(view) = self.views.borrow_and_update().clone() {
                        self.exchange.publish(view);
                    }
                }
                Event::Time => {}
                Event::End => return Ok(None),
                Event::Failed(status) => return Err(status),
            }
        }
    }

    async fn event(&mut self, now: Instant) -> Event<R> {
        let deadline = self.exchange.deadline(now);
        let time = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.stopping.wait_for(|stopping| *stopping) => Event::End,
            request = self.inbound.next() => match request {
                Ok(Some(request)) => Event::Request(request),
                Ok(None) => Event::End,
                Err(status) => Event::Failed(status),
            },
            changed = self.views.changed() => match changed {
                Ok(()) => Event::NodeView,
                Err(_) => Event::End,
            },
            () = time => Event::Time,
        }
    }

    fn hear(&mut self, request: R) -> Result<(), Status> {
        if let Some(node) = request.node() {
            self.record.identify(|| NodeIdentity::new(node));
            if node
                .client_features
                .iter()
                .any(|feature| feature == ACCEPTS_IN_PART)
            {
                self.exchange.accept_in_part();
            }
        }
        let Some(resource_type) = self.type_of(request.type_url())? else {
            return Ok(());
        };
        let view = self.exchange.view().cloned();
        // Acknowledgements repeat all names. Equal fingerprints save interning and comparing them.
        let named = self.fingerprint(resource_type, &request);
        let is_unchanged = named.is_some() && self.named[resource_type as usize] == named;
        let request = request.into_request(is_unchanged, |name| match &view {
            Some(view) => view.intern(resource_type, name),
            None => Arc::from(name),
        });
        let heard = self
            .exchange
            .request(resource_type, request)
            .map_err(|violation| Status::resource_exhausted(violation.to_string()))?;
        let limit = self.context.options.names_per_peer;
        (self.record.count_names(self.exchange.name_count(), limit)).map_err(|_| {
            self.context.metrics.turned_away();
            Status::resource_exhausted(format!(
                "more than {limit} names are subscribed to from this address"
            ))
        })?;
        // A stale request changes no subscription, so the next one is compared with the request before it.
        if heard != Heard::Stale {
            self.named[resource_type as usize] = named;
        }
        if let Heard::Rejected(version, message) = &heard
            && let Some(left_out) = self.context.lines.rejected.pass()
        {
            let message = crate::server::nodes::clean(message, 512);
            tracing::warn!(
                target: "xds::server",
                node = self.record.node_id(),
                r#type = %resource_type,
                %version,
                message,
                left_out,
                "a client has rejected a response"
            );
        }
        self.context.metrics.heard(resource_type, &heard);
        if let Some((wildcard, names)) = self.exchange.subscribed(resource_type) {
            self.record.heard(resource_type, &heard, wildcard, names);
        }
        Ok(())
    }

    /// Returns a fingerprint of the names of a request, if it contains all names. Two lists collide once in
    /// 2^64 times, and clients cannot search for collisions, since the key is random.
    fn fingerprint(&self, resource_type: ResourceType, request: &R) -> Option<u64> {
        let names = request.all_names()?;
        (!resource_type.has_wildcard()).then(|| self.key.hash_one(names))
    }

    /// Returns the type of a request. `None` if it is not served here.
    fn type_of(&mut self, type_url: &str) -> Result<Option<ResourceType>, Status> {
        let known = ResourceType::from_type_url(type_url);
        match self.only {
            Some(only) if type_url.is_empty() || known == Some(only) => Ok(Some(only)),
            Some(only) => Err(Status::invalid_argument(format!(
                "this method has resources of the type {} only",
                only.type_url()
            ))),
            None if type_url.is_empty() => Err(Status::invalid_argument(
                "type_url is missing: a request of an aggregated stream must name its type",
            )),
            None => {
                // A client may have other types, such as secrets, from us in its configuration. It gets the
                // rest nevertheless.
                if known.is_none()
                    && !std::mem::replace(&mut self.has_warned, true)
                    && let Some(left_out) = self.context.lines.unknown_type.pass()
                {
                    let type_url = crate::server::nodes::clean(type_url, 256);
                    tracing::info!(
                        target: "xds::server",
                        node = self.record.node_id(),
                        type_url,
                        left_out,
                        "a client requests a type that is not served"
                    );
                }
                Ok(known)
            }
        }
    }

    fn respond(&self, reply: Reply) -> Result<Framed, Status> {
        self.record.sent(&reply);
        let response = Response {
            reply,
            protocol: R::PROTOCOL,
            subscription: self.subscription,
            identifier: Arc::clone(&self.context.identifier),
        };
        let framed = super::framed(&response, &self.context)?;
        (self.context.metrics).sent(&response, framed.message_len());
        Ok(framed)
    }
}

impl<R> Conversation<R> {
    fn note_withheld(&mut self, withholds: bool) {
        if std::mem::replace(&mut self.withholds, withholds) != withholds {
            self.context.metrics.withholds(withholds);
        }
    }
}

impl<R> Drop for Conversation<R> {
    fn drop(&mut self) {
        self.note_withheld(false);
        self.context
            .metrics
            .closed(self.exchange.protocol(), self.subscription);
    }
}
