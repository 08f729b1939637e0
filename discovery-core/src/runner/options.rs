//! How a runner behaves.

use std::path::PathBuf;
use std::time::Duration;

/// How a [`Runner`](super::Runner) behaves. The defaults suit a registry in the same datacenter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// From the end of a successful round to the start of the next, if nothing triggers one earlier. 30 s; at least
    /// 10 ms.
    pub interval: Duration,
    /// By what share the interval varies in both directions, so that many proxies do not ask in step. 0.1; at most 0.9.
    pub jitter: f64,
    /// How long one call of [`discover`](crate::Discoverer::discover) may take before it is dropped, and how long parser
    /// and filters may take to make configuration of its answer. 60 s.
    pub discover_timeout: Duration,
    /// How long the validators of one service may take together. 10 s. A service that was not validated by then is
    /// quarantined. Several services are validated at the same time; all of a round take no longer than five times
    /// this, and those whose turn did not come are the first in the next round, which begins after a second.
    pub validate_timeout: Duration,
    /// How long what follows a round may take: one call of [`published`](crate::Discoverer::published), which is dropped
    /// then, and keeping the configuration on disk. 10 s.
    pub report_timeout: Duration,
    /// A triggered round waits until no further trigger has come for so long. 100 ms.
    pub debounce: Duration,
    /// A triggered round waits no longer than this, however many triggers come. 1 s.
    pub debounce_max: Duration,
    /// The least time between the starts of two rounds, whatever else is set. 250 ms; at least 10 ms.
    pub min_gap: Duration,
    /// The longest wait after the first error; it doubles with each further one. 500 ms. The actual wait is random,
    /// between half of this and the doubled time.
    pub backoff: Duration,
    /// The longest wait after any error, unless the source asked for more. 30 s. The first trigger after an error shortens
    /// it to the first step of the back-off.
    pub backoff_max: Duration,
    /// The longest wait that a source may ask for with [`retry_after`](crate::DiscoverError::with_retry_after). 1 h.
    pub retry_after_max: Duration,
    /// Whether services are considered in the order of the answer. `false`: by name, so that the configuration does not
    /// depend on the order in which a registry happens to list. When two services claim the same cluster or route the
    /// one that has it keeps it, and the first one gets it if nobody has.
    pub keep_order: bool,
    /// An answer with more services counts as an error. 100,000.
    pub max_services: usize,
    /// Whether a sudden disappearance of services must be confirmed. Unset: an answer is believed at once.
    pub confirm_removal: Option<ConfirmRemoval>,
    /// How long destinations serve on that the source cannot look at, while it can look at others of their service; see
    /// [`with_unread`](crate::DiscoveredService::with_unread). 30 min.
    pub unread_grace: Duration,
    /// File that keeps the last good configuration, so that a restart while the source is away still serves. Unset:
    /// none.
    pub persist: Option<PathBuf>,
    /// Seed of the random waits, for tests. Unset: random.
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
            retry_after_max: Duration::from_secs(3600),
            keep_order: false,
            max_services: 100_000,
            confirm_removal: None,
            unread_grace: Duration::from_secs(30 * 60),
            persist: None,
            seed: None,
        }
    }
}

/// When a disappearance of services must be confirmed.
///
/// An agent that has just restarted knows only itself, a credential that was revoked sees nothing: both answer
/// successfully. Such an answer is held back: new and changed services apply at once, those that are missing serve on
/// until they have been missing for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConfirmRemoval {
    /// What share of the services must be missing at once, above 0 and up to 1. 1: all of them. Services that are missing
    /// already and wait to be confirmed count.
    pub share: f64,
    /// How long each of them must be missing. 10 s.
    pub settle: Duration,
    /// How often the source is asked meanwhile. 1 s; at least 10 ms.
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
    /// Sets what share of the services must be missing at once.
    #[must_use]
    pub fn with_share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    /// Sets how long they must be missing.
    #[must_use]
    pub fn with_settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    /// Sets how often the source is asked meanwhile.
    #[must_use]
    pub fn with_recheck(mut self, recheck: Duration) -> Self {
        self.recheck = recheck;
        self
    }
}

/// Under this an interval would be a busy loop.
pub(super) const SHORTEST: Duration = Duration::from_millis(10);

/// Longer than this nobody waits, and sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl RunnerOptions {
    /// The same with times that can be counted with.
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
