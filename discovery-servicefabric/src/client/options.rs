//! The options of a client.

use std::time::Duration;

/// The options of a [`Client`](super::Client). The defaults suit a cluster in the same region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The time limit of one call, with all its pages, attempts and waits. Default: 60 s.
    pub budget: Duration,
    /// The time limit that the gateway is given for one request, in whole seconds. Less is requested if
    /// less is left of the budget. At least 1 s. Default: 30 s.
    pub server_timeout: Duration,
    /// The time that the client waits longer than the gateway, so that the gateway's own response arrives.
    /// Default: 5 s.
    pub grace: Duration,
    /// Maximum number of attempts of a read-only call. At least 1. Error responses count over all
    /// endpoints: there are at most this many, or one of each endpoint if there are more endpoints.
    /// Endpoints that do not respond count separately: each is tried at most this often, so that the client
    /// outlasts a short network outage regardless of the endpoint. Default: 3.
    pub attempts: u32,
    /// The longest wait after the first failed attempt. It doubles with each further one, up to 5 s. The
    /// actual wait is random, between half of this and this. Default: 250 ms.
    pub backoff: Duration,
    /// Maximum size of a response, in bytes. A gateway limits its own responses to 4 MiB unless it is
    /// configured otherwise. Default: 8 MiB.
    pub max_answer: usize,
    /// Maximum number of pages of one list. Default: 10,000.
    pub max_pages: usize,
    /// Maximum number of items of one list. Default: 500,000.
    pub max_items: usize,
    /// Maximum size of all pages of one list, in bytes. Default: 128 MiB.
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

/// Maximum of all waits, so that sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl ClientOptions {
    /// Returns the options with times limited so that they can be added.
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
