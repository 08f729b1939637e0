//! State of the world for endpoints and routes: a response may contain changed resources only, and missing ones
//! stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::subscription_state::SubscriptionState;
use super::{Content, Scope};
use crate::server::node_view::Served;

#[derive(Debug, Default)]
pub(super) struct Partial {
    subscription_state: SubscriptionState,
    /// Names that are subscribed to and were left out of a request that came too late to count. The client
    /// may have dropped these resources meanwhile.
    doubted: BTreeSet<Arc<str>>,
}

impl Partial {
    pub(super) fn subscription_state(&self) -> &SubscriptionState {
        &self.subscription_state
    }

    pub(super) fn subscription_state_mut(&mut self) -> &mut SubscriptionState {
        &mut self.subscription_state
    }

    /// Subscribes to exactly these names. Without names there is no subscription: there is no wildcard
    /// here.
    pub(super) fn want(&mut self, names: Vec<Arc<str>>) {
        let wanted: BTreeSet<_> = names.into_iter().collect();
        let unwanted: Vec<_> = self
            .subscription_state
            .names()
            .filter(|name| !wanted.contains(*name))
            .cloned()
            .collect();
        for name in unwanted {
            self.subscription_state.unsubscribe(&name);
        }
        let doubted = std::mem::take(&mut self.doubted);
        for name in wanted {
            if !self.subscription_state.is_subscribed(&name) || doubted.contains(&name) {
                self.subscription_state.subscribe(name);
            }
        }
    }

    /// Handles a subscription that the client sent before it had read the newest response. The current request is
    /// on its way; names that it repeats must be sent again.
    pub(super) fn wanted_before(&mut self, names: &[Arc<str>]) {
        let wanted: BTreeSet<_> = names.iter().collect();
        let left_out = self
            .subscription_state
            .names()
            .filter(|name| !wanted.contains(name));
        self.doubted.extend(left_out.cloned());
    }

    /// Returns the resources to send. This protocol cannot report missing ones.
    pub(super) fn due(&mut self, served: &Served, scope: Scope) -> Option<Content> {
        let mut content = self.subscription_state.due(served, None, scope);
        if self.subscription_state.goes_unsaid(&content) {
            let rest = self.subscription_state.due(served, None, Scope::Asked);
            content.version = rest.version;
            content.resources.extend(rest.resources);
        }
        content.removed.clear();
        (!content.resources.is_empty()).then_some(content)
    }
}
