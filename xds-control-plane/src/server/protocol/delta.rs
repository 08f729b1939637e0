//! The incremental protocol.

use std::sync::Arc;

use super::subscription_state::SubscriptionState;
use super::{Content, Scope, WILDCARD};
use crate::server::node_view::{Resources, Served};
use crate::snapshot::Version;

#[derive(Debug)]
pub(super) struct Delta {
    /// True if the type has a wildcard.
    has_wildcard: bool,
    began: bool,
    subscription_state: SubscriptionState,
    /// True if the client waits for a response even if there are no resources.
    greet: bool,
}

impl Delta {
    pub(super) fn new(has_wildcard: bool) -> Self {
        Self {
            has_wildcard,
            began: false,
            subscription_state: SubscriptionState::saying_removals(),
            greet: false,
        }
    }

    pub(super) fn subscription_state(&self) -> &SubscriptionState {
        &self.subscription_state
    }

    pub(super) fn subscription_state_mut(&mut self) -> &mut SubscriptionState {
        &mut self.subscription_state
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
                self.subscription_state.seed(&name, version);
            }
        }
        // A first request without names is the older form of the wildcard.
        let all = first && subscribe.is_empty() && self.has_wildcard;
        if all || subscribe.iter().any(|name| self.is_wildcard(name)) {
            self.subscription_state.subscribe_wildcard();
            self.greet = !reconnects;
        }
        for name in unsubscribe {
            if self.is_wildcard(&name) {
                self.subscription_state.unsubscribe_wildcard();
            } else {
                self.subscription_state.unsubscribe(&name);
            }
        }
        let named = subscribe
            .into_iter()
            .filter(|name| !self.has_wildcard || &**name != WILDCARD);
        for name in named {
            if first {
                self.subscription_state.subscribe_seeded(name);
            } else {
                self.subscription_state.subscribe(name);
            }
        }
        if first && !self.subscription_state.is_wildcard() {
            self.subscription_state.drop_seeds();
        }
    }

    pub(super) fn due(
        &mut self,
        served: &Served,
        keep: Option<&Resources>,
        scope: Scope,
    ) -> Option<Content> {
        let content = self.subscription_state.due(served, keep, scope);
        let greet = std::mem::take(&mut self.greet);
        (greet || !content.resources.is_empty() || !content.removed.is_empty()).then_some(content)
    }

    fn is_wildcard(&self, name: &str) -> bool {
        self.has_wildcard && name == WILDCARD
    }
}
