//! The options of a runner.

use std::path::PathBuf;
use std::time::Duration;

/// The options of a [`Runner`](super::Runner). The defaults suit a registry in the same datacenter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// The time from the end of a successful cycle to the start of the next, if no trigger starts one
    /// earlier. At least 10 ms. Default: 30 s.
    pub interval: Duration,
    /// The share by which the interval varies in both directions, so that many proxies do not poll in step.
    /// At most 0.9. Default: 0.1.
    pub jitter: f64,
    /// The time limit of one call of [`discover`](crate::Discoverer::discover), after which it is dropped.
    /// The same limit applies to parser and filters, which turn its result into configuration. Default: 60
    /// s.
    pub discover_timeout: Duration,
    /// The time limit of all validators of one service together. A service that is not validated by then is
    /// quarantined. Several services are validated at the same time. All services of a cycle take at most
    /// five times this limit; those that were not reached come first in the next cycle, which begins after
    /// 1 s. Default: 10 s.
    pub validate_timeout: Duration,
    /// The time limit of the work after a cycle: one call of [`published`](crate::Discoverer::published),
    /// which is dropped after it, and writing the configuration to disk. Default: 10 s.
    pub report_timeout: Duration,
    /// The time without a further trigger for which a triggered cycle waits. Default: 100 ms.
    pub debounce: Duration,
    /// The longest time that a triggered cycle waits, even if further triggers come. Default: 1 s.
    pub debounce_max: Duration,
    /// The least time between the starts of two cycles, independent of other settings. At least 10 ms.
    /// Default: 250 ms.
    pub min_gap: Duration,
    /// The longest wait after the first error. It doubles with each further error. The actual wait is
    /// random, between half of this and the doubled time. Default: 500 ms.
    pub backoff: Duration,
    /// The longest wait after any error, unless the source requested more. The first trigger after an error
    /// shortens it to the first step of the back-off. Default: 30 s.
    pub backoff_max: Duration,
    /// The longest wait that a source may request with
    /// [`retry_after`](crate::DiscoverError::with_retry_after). Default: 60 s.
    pub retry_after_max: Duration,
    /// True to consider services in the order of the discovery result, false to sort them by name, so that
    /// the configuration does not depend on the registry's order. If two services claim the same cluster,
    /// route or requests, the current owner keeps them. Without a current owner, the first service gets them.
    /// Default: false.
    pub keep_order: bool,
    /// Maximum number of services. A discovery result with more of them counts as an error. Default:
    /// 100,000.
    pub max_services: usize,
    /// The confirmation of a sudden disappearance of services. `None` to apply every result at once.
    /// Default: `None`.
    pub confirm_removal: Option<ConfirmRemoval>,
    /// The time for which unreadable destinations continue to serve while others of their service are
    /// known. See [`with_unread`](crate::DiscoveredService::with_unread). Default: 30 min.
    pub unread_grace: Duration,
    /// The file that keeps the last known good configuration, so that a restart while the source is
    /// unavailable still serves. `None` to keep none. Default: `None`.
    pub persist: Option<PathBuf>,
    /// Seed of the random waits, for tests. `None` for a random seed. Default: `None`.
    pub seed: Option<u64>,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            jitter: 0.1,
            discover_timeout: Duration::from_secs(60),
            validate_timeout: Duration::from_secs(10),
            report_timeout: Duration::from_secs(10),
            debounce: Duration::from_millis(100),
            debounce_max: Duration::from_secs(1),
            min_gap: Duration::from_millis(250),
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            retry_after_max: Duration::from_secs(60),
            keep_order: false,
            max_services: 100_000,
            confirm_removal: None,
            unread_grace: Duration::from_secs(30 * 60),
            persist: None,
            seed: None,
        }
    }
}

/// The rule by which a disappearance of services must be confirmed.
///
/// An agent that has just restarted knows only itself, and a revoked credential sees nothing: both return a
/// successful result. Such a result is held back: new and changed services apply at once, and missing
/// services continue to serve until they have been missing for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConfirmRemoval {
    /// The share of the services that must be missing at once, above 0 and up to 1. With 1, all must be
    /// missing. Services that are already missing and wait for confirmation count. Default: 1.
    pub share: f64,
    /// The time for which each of them must be missing. Default: 10 s.
    pub settle: Duration,
    /// The poll interval while services wait for confirmation. At least 10 ms. Default: 1 s.
    pub recheck: Duration,
}

impl Default for ConfirmRemoval {
    fn default() -> Self {
        Self {
            share: 1.0,
            settle: Duration::from_secs(10),
            recheck: Duration::from_secs(1),
        }
    }
}

impl ConfirmRemoval {
    /// Sets the share of the services that must be missing at once.
    #[must_use]
    pub fn with_share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    /// Sets the time for which the services must be missing before they are removed.
    #[must_use]
    pub fn with_settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    /// Sets the poll interval while services wait for confirmation.
    #[must_use]
    pub fn with_recheck(mut self, recheck: Duration) -> Self {
        self.recheck = recheck;
        self
    }
}

/// Minimum of all intervals. A shorter one would be a busy loop.
pub(super) const SHORTEST: Duration = Duration::from_millis(10);

/// Maximum of all waits, so that sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl RunnerOptions {
    /// Returns the options with times that can be used in calculations.
    pub(super) fn bounded(mut self) -> Self {
        for time in [
            &mut self.interval,
            &mut self.discover_timeout,
            &mut self.validate_timeout,
            &mut self.report_timeout,
            &mut self.debounce,
            &mut self.debounce_max,
            &mut self.min_gap,
            &mut self.backoff,
            &mut self.backoff_max,
            &mut self.retry_after_max,
            &mut self.unread_grace,
        ] {
            *time = (*time).min(LONGEST);
        }
        self.min_gap = self.min_gap.max(SHORTEST);
        if let Some(rule) = &mut self.confirm_removal {
            rule.recheck = rule.recheck.max(SHORTEST);
        }
        self
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl RunnerOptions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: $type) -> Self {
                    self.$field = value.into();
                    self
                }
            )*
        }
    };
}

setters! {
    /// Sets [`interval`](Self::interval).
    with_interval interval: Duration;
    /// Sets [`jitter`](Self::jitter).
    with_jitter jitter: f64;
    /// Sets [`discover_timeout`](Self::discover_timeout).
    with_discover_timeout discover_timeout: Duration;
    /// Sets [`validate_timeout`](Self::validate_timeout).
    with_validate_timeout validate_timeout: Duration;
    /// Sets [`report_timeout`](Self::report_timeout).
    with_report_timeout report_timeout: Duration;
    /// Sets [`debounce`](Self::debounce).
    with_debounce debounce: Duration;
    /// Sets [`debounce_max`](Self::debounce_max).
    with_debounce_max debounce_max: Duration;
    /// Sets [`min_gap`](Self::min_gap).
    with_min_gap min_gap: Duration;
    /// Sets [`backoff`](Self::backoff).
    with_backoff backoff: Duration;
    /// Sets [`backoff_max`](Self::backoff_max).
    with_backoff_max backoff_max: Duration;
    /// Sets [`retry_after_max`](Self::retry_after_max).
    with_retry_after_max retry_after_max: Duration;
    /// Sets [`keep_order`](Self::keep_order).
    with_keep_order keep_order: bool;
    /// Sets [`max_services`](Self::max_services).
    with_max_services max_services: usize;
    /// Sets [`confirm_removal`](Self::confirm_removal).
    with_confirm_removal confirm_removal: ConfirmRemoval;
    /// Sets [`unread_grace`](Self::unread_grace).
    with_unread_grace unread_grace: Duration;
    /// Sets [`persist`](Self::persist).
    with_persist persist: PathBuf;
    /// Sets [`seed`](Self::seed).
    with_seed seed: u64;
}
