//! The results of responses. A rejected resource is not sent again until something in its response has
//! changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Held, SubscriptionState};
use crate::server::node_view::Served;
use crate::server::protocol::Content;
use crate::server::protocol::nack::nacked;
use crate::snapshot::Version;

impl SubscriptionState {
    /// Records the response of that nonce as sent.
    pub(in crate::server::protocol) fn sent(&mut self, nonce: u64, content: &Content) {
        let mut names: Vec<_> = content
            .resources
            .iter()
            .map(|resource| resource.name())
            .chain(&content.removed)
            .cloned()
            .collect();
        names.sort_unstable();
        let mut corrects = false;
        if !self.rejected.is_empty() {
            for name in &names {
                corrects |= self.rejected.remove(name);
            }
        }
        let new = std::mem::take(&mut self.new);
        self.in_flight.depart(nonce, content, names, new, corrects);
    }

    /// Records that the client has accepted the response of that nonce. Returns its version.
    pub(in crate::server::protocol) fn acknowledged(&mut self, nonce: u64) -> Option<Version> {
        let flight = self.in_flight.accepted(nonce)?;
        if !self.lacking.is_empty() {
            for name in &flight.names {
                self.lacking.remove(name);
            }
        }
        if flight.corrects {
            self.retry_rejected();
        }
        Some(flight.version)
    }

    /// Records that the client has rejected the response of that nonce, with its message. Nothing of it is
    /// sent again before a part of it changes. When the change has been accepted, the rest is sent, which
    /// may have been rejected only because of that part. Returns the version.
    pub(in crate::server::protocol) fn rejected(
        &mut self,
        nonce: u64,
        message: &str,
    ) -> Option<Version> {
        let flight = self.in_flight.rejected(nonce)?;
        match nacked(message, &flight.names) {
            // The rest it has taken.
            Some(nacked) => {
                let (lacking, taken) =
                    (flight.new.into_iter()).partition::<Vec<_>, _>(|name| nacked.contains(name));
                for name in taken {
                    self.lacking.remove(&name);
                }
                self.lacking.extend(lacking);
            }
            None => self.lacking.extend(flight.new),
        }
        let mut lighter = false;
        for name in flight.names {
            if self.in_flight.is_sent_after(nonce, &name) {
                continue;
            }
            let is_wanted = match self.entries.get(&name) {
                Some(entry) => self.says_removals || entry.held != Held::Absent,
                None => self.wildcard,
            };
            if is_wanted {
                self.rejected.insert(name);
            } else {
                lighter = true;
            }
        }
        // Without names that the client has unsubscribed from meanwhile, or unreported removals, the rest
        // is another response.
        if lighter {
            self.retry_rejected();
        }
        Some(flight.version)
    }

    /// Records that the removals in `content` are not sent, since the protocol cannot express them. If a removed
    /// resource had been rejected, the other resources that were rejected with it, and are not in `content`, become
    /// due.
    pub(in crate::server::protocol) fn goes_unsaid(&mut self, content: &Content) -> bool {
        let mut lighter = false;
        for name in &content.removed {
            lighter |= self.rejected.remove(name);
        }
        if lighter {
            for resource in &content.resources {
                self.rejected.remove(resource.name());
            }
            self.retry_rejected();
        }
        lighter
    }

    /// Returns the served resources that the client has rejected and therefore lacks.
    pub(in crate::server::protocol) fn lacking(&self, served: &Served) -> BTreeSet<Arc<str>> {
        let is_wanted = |name: &str| self.wildcard || self.is_subscribed(name);
        (self.lacking.iter())
            .filter(|name| is_wanted(name) && served.set().get(name).is_some())
            .cloned()
            .collect()
    }

    pub(super) fn retry_rejected(&mut self) {
        for name in std::mem::take(&mut self.rejected) {
            let explicit = self.is_subscribed(&name);
            if explicit || self.wildcard {
                self.change(&name, Some(Held::Unknown), explicit);
                self.ask(name);
            }
        }
    }
}
