//! State of the world for endpoints and routes: a response may hold only what changed, and what it does not hold stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ledger::Ledger;
use super::{Content, Scope};
use crate::server::view::Served;

#[derive(Debug, Default)]
pub(super) struct Partial {
    ledger: Ledger,
    /// Names that are subscribed to and were left out of a request that came too late to count. The client
    /// may have dropped these resources meanwhile.
    doubted: BTreeSet<Arc<str>>,
}

impl Partial {
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Subscribes to exactly these names. Without names there is no subscription: there is no wildcard
    /// here.
    pub(super) fn want(&mut self, names: Vec<Arc<str>>) {
        let wanted: BTreeSet<_> = names.into_iter().collect();
        let unwanted: Vec<_> = self
            .ledger
            .names()
            .filter(|name| !wanted.contains(*name))
            .cloned()
            .collect();
        for name in unwanted {
            self.ledger.unsubscribe(&name);
        }
        let doubted = std::mem::take(&mut self.doubted);
        for name in wanted {
            if !self.ledger.is_subscribed(&name) || doubted.contains(&name) {
                self.ledger.subscribe(name);
            }
        }
    }

    /// Handles a subscription from before the client had read the newest response. The current request is
    /// on its way; names that are in it again have to be sent again.
    pub(super) fn wanted_before(&mut self, names: &[Arc<str>]) {
        let wanted: BTreeSet<_> = names.iter().collect();
        let left_out = self.ledger.names().filter(|name| !wanted.contains(name));
        self.doubted.extend(left_out.cloned());
    }

    /// Returns the resources to send. This protocol cannot report missing ones.
    pub(super) fn due(&mut self, served: &Served, scope: Scope) -> Option<Content> {
        let mut content = self.ledger.due(served, None, scope);
        if self.ledger.goes_unsaid(&content) {
            let rest = self.ledger.due(served, None, Scope::Asked);
            content.version = rest.version;
            content.resources.extend(rest.resources);
        }
        content.removed.clear();
        (!content.resources.is_empty()).then_some(content)
    }
}
