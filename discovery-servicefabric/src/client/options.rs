//! How a client behaves.

use std::time::Duration;

/// How a [`Client`](super::Client) behaves. The defaults suit a cluster in the same region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientOptions {
    /// How long one call may take with all its pages, attempts and waits. 60 s.
    pub budget: Duration,
    /// How long the gateway is told to work on one request, in whole seconds. 30 s; at least 1 s. Less is asked for when
    /// less is left of the budget.
    pub server_timeout: Duration,
    /// How much longer than the gateway the client waits, so that the gateway's own answer arrives. 5 s.
    pub grace: Duration,
    /// How often a call that only reads is made. 3; at least 1. Answers that are errors count over all endpoints: there are
    /// at most so many, or one of each endpoint if these are more. Endpoints that do not answer count each for itself: every
    /// one is asked at most so often, so that a short outage of the network is waited out whichever is asked.
    pub attempts: u32,
    /// The longest wait after the first failed attempt; it doubles with each further one, up to 5 s. 250 ms. The actual
    /// wait is random, between half of this and this.
    pub backoff: Duration,
    /// The largest answer, in bytes. 8 MiB. A gateway limits its own to 4 MiB unless it is told otherwise.
    pub max_answer: usize,
    /// The most pages of one list. 10,000.
    pub max_pages: usize,
    /// The most items of one list. 500,000.
    pub max_items: usize,
    /// The most bytes of all pages of one list. 128 MiB.
    pub max_list_bytes: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            budget: Duration::from_secs(60),
            server_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            attempts: 3,
            backoff: Duration::from_millis(250),
            max_answer: 8 * MIB,
            max_pages: 10_000,
            max_items: 500_000,
            max_list_bytes: 128 * MIB,
        }
    }
}

/// Longer than this nobody waits, and sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl ClientOptions {
    /// The same with times that can be counted with.
    pub(super) fn bounded(mut self) -> Self {
        for time in [&mut self.budget, &mut self.grace, &mut self.backoff] {
            *time = (*time).min(LONGEST);
        }
        self.server_timeout = self.server_timeout.clamp(Duration::from_secs(1), LONGEST);
        self.attempts = self.attempts.max(1);
        self
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl ClientOptions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: $type) -> Self {
                    self.$field = value;
                    self
                }
            )*
        }
    };
}

setters! {
    /// Sets [`budget`](Self::budget).
    with_budget budget: Duration;
    /// Sets [`server_timeout`](Self::server_timeout).
    with_server_timeout server_timeout: Duration;
    /// Sets [`grace`](Self::grace).
    with_grace grace: Duration;
    /// Sets [`attempts`](Self::attempts).
    with_attempts attempts: u32;
    /// Sets [`backoff`](Self::backoff).
    with_backoff backoff: Duration;
    /// Sets [`max_answer`](Self::max_answer).
    with_max_answer max_answer: usize;
    /// Sets [`max_pages`](Self::max_pages).
    with_max_pages max_pages: usize;
    /// Sets [`max_items`](Self::max_items).
    with_max_items max_items: usize;
    /// Sets [`max_list_bytes`](Self::max_list_bytes).
    with_max_list_bytes max_list_bytes: usize;
}
