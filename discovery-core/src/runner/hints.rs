//! Fast refresh of services that the data plane cannot reach, without waiting for the interval.
//!
//! A service is refreshed within moments of the first failure. While that changes nothing, it is refreshed
//! each second, for as long as a cluster takes to choose another primary, and then less and less often,
//! down to the interval. Without failures there are no refreshes, and no cost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use proxy_model::config::ProxyConfig;
use tokio::time::{Instant, sleep_until};

use super::options::RunnerOptions;
use super::registry::Registry;
use crate::unreachable::{Unreachable, UnreachableClusters, UnreachableService};

/// Maximum number of services that are refreshed in one cycle. Further requests that fail report the others
/// again.
const MOST_AT_ONCE: usize = 100;

/// The longest wait before the first refresh, so that the proxies of a fleet do not poll at the same
/// moment.
const FIRST: Duration = Duration::from_millis(50);

/// Waits between the first looks that changed nothing.
const STEPS: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(500)];

/// The wait between the looks after these.
const STEADY: Duration = Duration::from_secs(1);

/// Number of refreshes that follow each other at this interval: about the seconds that a cluster needs to
/// recover from a loss.
const STEADY_LOOKS: u32 = 30;

/// The longest wait while the source itself is unavailable, so that its return is noticed quickly.
const OUTAGE: Duration = Duration::from_millis(1_500);

/// Number of intervals without a failure after which a service counts as one that never failed.
const FORGOTTEN: u32 = 2;

/// The refresh state of a service.
struct Looked {
    /// Number of refreshes that changed nothing.
    in_vain: u32,
    /// The time of the last refresh. `None` if the first one is due.
    at: Option<Instant>,
    /// The time of the next refresh, since requests still fail.
    due: Option<Instant>,
    seen: Unreachable,
    /// True while the cycle that refreshes the service is running.
    is_being_looked_at: bool,
    /// The configuration that served at the last refresh.
    form: Option<Arc<ProxyConfig>>,
}

/// Decides when to look at which service.
pub(super) struct Hints {
    reported: Arc<UnreachableClusters>,
    looked: HashMap<Arc<str>, Looked>,
    interval: Duration,
    rng: Rng,
}

impl Hints {
    pub(super) fn new(reported: Arc<UnreachableClusters>, options: &RunnerOptions) -> Self {
        Self {
            reported,
            looked: HashMap::new(),
            interval: options.interval.max(STEADY),
            rng: options.seed.map_or_else(Rng::new, Rng::with_seed),
        }
    }

    /// Waits until services should be refreshed, and not before `earliest`. `is_away` means that the source
    /// is unavailable.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub(super) async fn next(
        &mut self,
        registry: Option<&Registry>,
        earliest: Instant,
        is_away: bool,
    ) -> Vec<UnreachableService> {
        let Some(registry) = registry else {
            return std::future::pending().await;
        };
        loop {
            let due = self.looked.values().filter_map(|looked| looked.due).min();
            let due = due.map(|due| due.max(earliest));
            let waited = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                reported = self.reported.next() => {
                    for (cluster, seen) in reported {
                        if let Some(service) = registry.owner_of(&cluster) {
                            let service = Arc::clone(service);
                            self.reported_again(service, seen, is_away);
                        }
                    }
                }
                () = waited => return self.take_due(registry),
            }
        }
    }

    fn reported_again(&mut self, service: Arc<str>, seen: Unreachable, is_away: bool) {
        let now = Instant::now();
        let first = FIRST.mul_f64(self.rng.f64());
        let varied = 0.75 + 0.5 * self.rng.f64();
        let longest = if is_away { OUTAGE } else { self.interval };
        let looked = self.looked.entry(service).or_insert(Looked {
            in_vain: 0,
            at: None,
            due: None,
            seen,
            is_being_looked_at: false,
            form: None,
        });
        looked.seen = seen;
        let Some(at) = looked.at else {
            looked.due.get_or_insert(now + first);
            return;
        };
        if now >= at + self.interval * FORGOTTEN {
            looked.in_vain = 0;
        }
        let due = at + wait(looked.in_vain, longest).mul_f64(varied);
        // Chosen once: the earliest of many choices would be no choice. An outage may shorten it.
        let latest = at + longest.mul_f64(1.25);
        looked.due = Some(looked.due.unwrap_or(due).min(latest));
    }

    fn take_due(&mut self, registry: &Registry) -> Vec<UnreachableService> {
        let now = Instant::now();
        // A service without a failure for long begins from the start.
        let forgotten = self.interval * FORGOTTEN;
        self.looked.retain(|_, looked| {
            looked.due.is_some() || looked.at.is_some_and(|at| now < at + forgotten)
        });
        let due = self.looked.iter_mut();
        let due = due.filter(|(_, looked)| looked.due.is_some_and(|due| due <= now));
        let taken = due.take(MOST_AT_ONCE).map(|(name, looked)| {
            looked.due = None;
            looked.at = Some(now);
            looked.is_being_looked_at = true;
            looked.form = registry.form_of(name).cloned();
            UnreachableService::new(Arc::clone(name), looked.seen)
        });
        taken.collect()
    }

    /// Records the end of a refresh. Services that it changed are refreshed at once when they fail again.
    pub(super) fn looked(&mut self, registry: Option<&Registry>) {
        let Some(registry) = registry else { return };
        self.looked.retain(|name, looked| {
            if !std::mem::take(&mut looked.is_being_looked_at) {
                return true;
            }
            looked.in_vain = looked.in_vain.saturating_add(1);
            registry.form_of(name).is_some_and(|form| {
                let before = looked.form.as_ref();
                before.is_some_and(|before| Arc::ptr_eq(before, form) || before == form)
            })
        });
    }

    /// Records that the source is available again: services refreshed without success meanwhile are
    /// refreshed at once.
    pub(super) fn source_is_back(&mut self) {
        for looked in self.looked.values_mut() {
            looked.in_vain = 0;
        }
    }
}

/// The wait after a look that changed nothing, `in_vain` of them in a row.
fn wait(in_vain: u32, longest: Duration) -> Duration {
    let looks = in_vain.saturating_sub(1);
    let wait = match STEPS.get(looks as usize) {
        Some(step) => *step,
        None => {
            let doubled = looks.saturating_sub(STEADY_LOOKS).min(16);
            STEADY * 2_u32.pow(doubled)
        }
    };
    wait.min(longest)
}
