//! The incremental protocol.

use std::sync::Arc;

use super::ledger::Ledger;
use super::{Content, Scope, WILDCARD};
use crate::server::view::{Resources, Served};
use crate::snapshot::Version;

#[derive(Debug)]
pub(super) struct Delta {
    /// True if the type has a wildcard.
    has_wildcard: bool,
    began: bool,
    ledger: Ledger,
    /// True if the client waits for a response even if there are no resources.
    greet: bool,
}

impl Delta {
    pub(super) fn new(has_wildcard: bool) -> Self {
        Self {
            has_wildcard,
            began: false,
            ledger: Ledger::saying_removals(),
            greet: false,
        }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Changes the subscription, with any nonce in the request.
    pub(super) fn want(
        &mut self,
        subscribe: Vec<Arc<str>>,
        unsubscribe: Vec<Arc<str>>,
        initial: Vec<(Arc<str>, Option<Version>)>,
    ) {
        let first = !std::mem::replace(&mut self.began, true);
        let reconnects = first && !initial.is_empty();
        if first {
            for (name, version) in initial {
                self.ledger.seed(&name, version);
            }
        }
        // A first request without names is the older form of the wildcard.
        let all = first && subscribe.is_empty() && self.has_wildcard;
        if all || subscribe.iter().any(|name| self.is_wildcard(name)) {
            self.ledger.subscribe_wildcard();
            self.greet = !reconnects;
        }
        for name in unsubscribe {
            if self.is_wildcard(&name) {
                self.ledger.unsubscribe_wildcard();
            } else {
                self.ledger.unsubscribe(&name);
            }
        }
        let named = subscribe
            .into_iter()
            .filter(|name| !self.has_wildcard || &**name != WILDCARD);
        for name in named {
            if first {
                self.ledger.subscribe_seeded(name);
            } else {
                self.ledger.subscribe(name);
            }
        }
        if first && !self.ledger.is_wildcard() {
            self.ledger.drop_seeds();
        }
    }

    pub(super) fn due(
        &mut self,
        served: &Served,
        keep: Option<&Resources>,
        scope: Scope,
    ) -> Option<Content> {
        let content = self.ledger.due(served, keep, scope);
        let greet = std::mem::take(&mut self.greet);
        (greet || !content.resources.is_empty() || !content.removed.is_empty()).then_some(content)
    }

    fn is_wildcard(&self, name: &str) -> bool {
        self.has_wildcard && name == WILDCARD
    }
}
