//! One type on one stream.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::delta::Delta;
use super::full::Full;
use super::partial::Partial;
use super::{Content, Heard, Reply, Request, Scope, StreamProtocol, Violation, Wants};
use crate::server::node_view::{Resources, Served};
use crate::snapshot::{ResourceType, Version};

#[derive(Debug)]
pub(super) struct Channel {
    resource_type: ResourceType,
    machine: Machine,
    began: bool,
    last: Option<Sent>,
    /// The version of all resources when nothing was left to send.
    complete: Option<Version>,
}

#[derive(Debug)]
enum Machine {
    Full(Full),
    Partial(Partial),
    Delta(Delta),
}

/// The response that went out last.
#[derive(Debug)]
struct Sent {
    nonce: u64,
    version: Version,
    at: Instant,
    ack_state: AckState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckState {
    Open,
    Acknowledged,
    Rejected,
}

impl Channel {
    pub(super) fn new(protocol: StreamProtocol, resource_type: ResourceType) -> Self {
        let machine = match protocol {
            StreamProtocol::Delta => Machine::Delta(Delta::new(resource_type.has_wildcard())),
            StreamProtocol::Sotw if resource_type.has_wildcard() => Machine::Full(Full::default()),
            StreamProtocol::Sotw => Machine::Partial(Partial::default()),
        };
        Self {
            resource_type,
            machine,
            began: false,
            last: None,
            complete: None,
        }
    }

    /// Handles a request. `limit` is the maximum number of subscribed names.
    pub(super) fn request(&mut self, request: Request, limit: usize) -> Result<Heard, Violation> {
        let first = !std::mem::replace(&mut self.began, true);
        let heard = self.hear(&request, first);
        let count = match &request.wants {
            Wants::Sotw { names, .. } => names.len(),
            Wants::Unchanged => 0,
            // A client's resources and its subscription have mostly the same names.
            Wants::Delta {
                subscribe, initial, ..
            } => initial.len().max(self.names_with(subscribe)),
        };
        if count > limit {
            return Err(Violation::TooManyNames { limit });
        }
        match (&mut self.machine, request.wants) {
            // A newer request of the client, about the newer response, is on its way.
            (Machine::Partial(partial), Wants::Sotw { names, .. }) if heard == Heard::Stale => {
                partial.wanted_before(&names);
            }
            (Machine::Full(_), _) if heard == Heard::Stale => {}
            (Machine::Full(full), Wants::Sotw { names, version }) => {
                full.want(names, version.filter(|_| first));
                if let Heard::Rejected(version, message) = &heard {
                    full.rejected(*version, message);
                }
            }
            (Machine::Partial(partial), Wants::Sotw { names, .. }) => partial.want(names),
            (Machine::Partial(_), Wants::Unchanged) => {}
            (
                Machine::Delta(delta),
                Wants::Delta {
                    subscribe,
                    unsubscribe,
                    initial,
                },
            ) => delta.want(subscribe, unsubscribe, initial),
            (Machine::Full(_) | Machine::Partial(_), Wants::Delta { .. })
            | (Machine::Full(_) | Machine::Delta(_), Wants::Unchanged)
            | (Machine::Delta(_), Wants::Sotw { .. }) => {
                debug_assert!(false, "a stream speaks one protocol");
            }
        }
        Ok(heard)
    }

    /// Handles the acknowledgement or rejection in a request. In a first request it can only refer to an earlier
    /// stream.
    fn hear(&mut self, request: &Request, first: bool) -> Heard {
        if first || request.nonce.is_empty() {
            return Heard::Asked;
        }
        let nonce = request.nonce.parse::<u64>().ok();
        let subscription_state = match &mut self.machine {
            Machine::Full(_) => None,
            Machine::Partial(partial) => Some(partial.subscription_state_mut()),
            Machine::Delta(delta) => Some(delta.subscription_state_mut()),
        };
        let landed = match (nonce, subscription_state, &request.rejection) {
            (Some(nonce), Some(subscription_state), None) => subscription_state.acknowledged(nonce),
            (Some(nonce), Some(subscription_state), Some(message)) => {
                subscription_state.rejected(nonce, message)
            }
            (None, ..) | (_, None, _) => None,
        };
        let version = match &mut self.last {
            // Nothing has been sent that could have been overtaken.
            None => return Heard::Asked,
            // Answered before, so it is only about the subscription.
            Some(last) if Some(last.nonce) == nonce && last.ack_state != AckState::Open => {
                return Heard::Asked;
            }
            Some(last) if Some(last.nonce) == nonce => {
                last.ack_state = match request.rejection {
                    None => AckState::Acknowledged,
                    Some(_) => AckState::Rejected,
                };
                last.version
            }
            Some(_) => match (&self.machine, landed) {
                (Machine::Delta(_), Some(version)) => version,
                _ => return Heard::Stale,
            },
        };
        match &request.rejection {
            None => {
                if let Machine::Full(full) = &mut self.machine {
                    full.acknowledged(version);
                }
                Heard::Acknowledged(version)
            }
            Some(message) => Heard::Rejected(version, message.clone()),
        }
    }

    /// Returns the due response with that nonce, and the names of its new or changed resources. `keep`
    /// contains removed resources that stay.
    pub(super) fn reply(
        &mut self,
        served: &Served,
        keep: Option<&Resources>,
        scope: Scope,
        nonce: u64,
        now: Instant,
    ) -> Option<(Reply, Vec<Arc<str>>)> {
        let due = match &mut self.machine {
            Machine::Full(full) => full
                .due(served, keep, scope == Scope::Asked)
                .map(|due| (due.content, due.changed)),
            Machine::Partial(partial) => partial.due(served, scope).map(with_names),
            Machine::Delta(delta) => delta.due(served, keep, scope).map(with_names),
        };
        if scope == Scope::All {
            self.complete = Some(served.version());
        }
        let (content, changed) = due?;
        match &mut self.machine {
            Machine::Full(_) => {}
            Machine::Partial(partial) => partial.subscription_state_mut().sent(nonce, &content),
            Machine::Delta(delta) => delta.subscription_state_mut().sent(nonce, &content),
        }
        self.last = Some(Sent {
            nonce,
            version: content.version,
            at: now,
            ack_state: AckState::Open,
        });
        let reply = Reply {
            resource_type: self.resource_type,
            version: content.version,
            nonce,
            resources: content.resources,
            removed: content.removed,
        };
        Some((reply, changed))
    }

    /// Marks these resources as to be sent again, as far as the client subscribes to them.
    pub(super) fn forget(&mut self, names: &[Arc<str>]) {
        match &mut self.machine {
            Machine::Full(_) => {}
            Machine::Partial(partial) => partial.subscription_state_mut().forget(names),
            Machine::Delta(delta) => delta.subscription_state_mut().forget(names),
        }
    }

    /// Returns the time until which changes wait for the client to acknowledge or reject the last response,
    /// if they wait.
    pub(super) fn waits_until(&self, patience: Duration, now: Instant) -> Option<Instant> {
        let last = self.last.as_ref()?;
        let until = last.at + patience;
        (last.ack_state == AckState::Open && now < until).then_some(until)
    }

    /// Returns the served resources that the client has rejected and therefore lacks.
    pub(super) fn lacking(&self, served: &Served) -> BTreeSet<Arc<str>> {
        match &self.machine {
            Machine::Full(full) => full.lacking(served),
            Machine::Partial(partial) => partial.subscription_state().lacking(served),
            Machine::Delta(delta) => delta.subscription_state().lacking(served),
        }
    }

    /// Returns true if the client uses all served resources that it subscribes to.
    pub(super) fn is_settled(&self, served: &Served) -> bool {
        self.complete == Some(served.version())
            && self
                .last
                .as_ref()
                .is_none_or(|last| last.ack_state == AckState::Acknowledged)
    }

    pub(super) fn is_wildcard(&self) -> bool {
        match &self.machine {
            Machine::Full(full) => full.is_wildcard(),
            Machine::Partial(partial) => partial.subscription_state().is_wildcard(),
            Machine::Delta(delta) => delta.subscription_state().is_wildcard(),
        }
    }

    /// The subscribed names, except for the wildcard.
    pub(super) fn names(&self) -> Box<dyn Iterator<Item = &Arc<str>> + '_> {
        match &self.machine {
            Machine::Full(full) => Box::new(full.names().iter()),
            Machine::Partial(partial) => Box::new(partial.subscription_state().names()),
            Machine::Delta(delta) => Box::new(delta.subscription_state().names()),
        }
    }

    /// Number of names with state.
    pub(super) fn name_count(&self) -> usize {
        match &self.machine {
            Machine::Full(full) => full.names().len(),
            Machine::Partial(partial) => partial.subscription_state().len_with(&[]),
            Machine::Delta(delta) => delta.subscription_state().len_with(&[]),
        }
    }

    /// Number of names with state if these are added.
    fn names_with(&self, more: &[Arc<str>]) -> usize {
        match &self.machine {
            Machine::Delta(delta) => delta.subscription_state().len_with(more),
            Machine::Full(_) | Machine::Partial(_) => more.len(),
        }
    }
}

fn with_names(content: Content) -> (Content, Vec<Arc<str>>) {
    let names = content
        .resources
        .iter()
        .map(|resource| Arc::clone(resource.name()))
        .collect();
    (content, names)
}
