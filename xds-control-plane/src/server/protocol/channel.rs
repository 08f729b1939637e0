//! One type on one stream.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::delta::Delta;
use super::full::Full;
use super::partial::Partial;
use super::{Content, Heard, Protocol, Reply, Request, Scope, Violation, Wants};
use crate::server::view::{Resources, Served};
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
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Acknowledged,
    Refused,
}

impl Channel {
    pub(super) fn new(protocol: Protocol, resource_type: ResourceType) -> Self {
        let machine = match protocol {
            Protocol::Delta => Machine::Delta(Delta::new(resource_type.has_wildcard())),
            Protocol::Sotw if resource_type.has_wildcard() => Machine::Full(Full::default()),
            Protocol::Sotw => Machine::Partial(Partial::default()),
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
                if let Heard::Refused(version, message) = &heard {
                    full.refused(*version, message);
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

    /// Interprets the part of a request that answers a response. In a first request it can only refer to an
    /// earlier stream.
    fn hear(&mut self, request: &Request, first: bool) -> Heard {
        if first || request.nonce.is_empty() {
            return Heard::Asked;
        }
        let nonce = request.nonce.parse::<u64>().ok();
        let ledger = match &mut self.machine {
            Machine::Full(_) => None,
            Machine::Partial(partial) => Some(partial.ledger_mut()),
            Machine::Delta(delta) => Some(delta.ledger_mut()),
        };
        let landed = match (nonce, ledger, &request.refusal) {
            (Some(nonce), Some(ledger), None) => ledger.acknowledged(nonce),
            (Some(nonce), Some(ledger), Some(message)) => ledger.refused(nonce, message),
            (None, ..) | (_, None, _) => None,
        };
        let version = match &mut self.last {
            // Nothing has been sent that could have been overtaken.
            None => return Heard::Asked,
            // Answered before, so it is only about the subscription.
            Some(last) if Some(last.nonce) == nonce && last.fate != Fate::Open => {
                return Heard::Asked;
            }
            Some(last) if Some(last.nonce) == nonce => {
                last.fate = match request.refusal {
                    None => Fate::Acknowledged,
                    Some(_) => Fate::Refused,
                };
                last.version
            }
            Some(_) => match (&self.machine, landed) {
                (Machine::Delta(_), Some(version)) => version,
                _ => return Heard::Stale,
            },
        };
        match &request.refusal {
            None => {
                if let Machine::Full(full) = &mut self.machine {
                    full.acknowledged(version);
                }
                Heard::Acknowledged(version)
            }
            Some(message) => Heard::Refused(version, message.clone()),
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
            Machine::Partial(partial) => partial.ledger_mut().sent(nonce, &content),
            Machine::Delta(delta) => delta.ledger_mut().sent(nonce, &content),
        }
        self.last = Some(Sent {
            nonce,
            version: content.version,
            at: now,
            fate: Fate::Open,
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
            Machine::Partial(partial) => partial.ledger_mut().forget(names),
            Machine::Delta(delta) => delta.ledger_mut().forget(names),
        }
    }

    /// Returns the time until which changes wait for the client to acknowledge or reject the last response,
    /// if they wait.
    pub(super) fn waits_until(&self, patience: Duration, now: Instant) -> Option<Instant> {
        let last = self.last.as_ref()?;
        let until = last.at + patience;
        (last.fate == Fate::Open && now < until).then_some(until)
    }

    /// Returns the served resources that the client has rejected and therefore lacks.
    pub(super) fn lacking(&self, served: &Served) -> BTreeSet<Arc<str>> {
        match &self.machine {
            Machine::Full(full) => full.lacking(served),
            Machine::Partial(partial) => partial.ledger().lacking(served),
            Machine::Delta(delta) => delta.ledger().lacking(served),
        }
    }

    /// Returns true if the client uses all served resources that it wants.
    pub(super) fn is_settled(&self, served: &Served) -> bool {
        self.complete == Some(served.version())
            && self
                .last
                .as_ref()
                .is_none_or(|last| last.fate == Fate::Acknowledged)
    }

    pub(super) fn is_wildcard(&self) -> bool {
        match &self.machine {
            Machine::Full(full) => full.is_wildcard(),
            Machine::Partial(partial) => partial.ledger().is_wildcard(),
            Machine::Delta(delta) => delta.ledger().is_wildcard(),
        }
    }

    /// The subscribed names, except for the wildcard.
    pub(super) fn names(&self) -> Box<dyn Iterator<Item = &Arc<str>> + '_> {
        match &self.machine {
            Machine::Full(full) => Box::new(full.names().iter()),
            Machine::Partial(partial) => Box::new(partial.ledger().names()),
            Machine::Delta(delta) => Box::new(delta.ledger().names()),
        }
    }

    /// Number of names with state.
    pub(super) fn name_count(&self) -> usize {
        match &self.machine {
            Machine::Full(full) => full.names().len(),
            Machine::Partial(partial) => partial.ledger().len_with(&[]),
            Machine::Delta(delta) => delta.ledger().len_with(&[]),
        }
    }

    /// Number of names with state if these are added.
    fn names_with(&self, more: &[Arc<str>]) -> usize {
        match &self.machine {
            Machine::Delta(delta) => delta.ledger().len_with(more),
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
