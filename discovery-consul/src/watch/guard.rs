//! The decision to trust large losses. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::options::ShrinkGuard;
use super::state::{ServiceState, Services};

/// The longest time that a loss waits for its rest, while services with changes are being read.
const LONGEST: Duration = Duration::from_secs(2);

/// Holds back large losses until they are confirmed; see [`ShrinkGuard`].
#[derive(Debug)]
pub(super) struct Guard {
    options: ShrinkGuard,
    /// The time since which a loss is held back.
    since: Option<Instant>,
    /// True while the second read is running.
    is_looking: bool,
    /// True if the servers may not know everything yet.
    is_in_doubt: bool,
    /// The time since which a loss waits for its rest.
    waits_since: Option<Instant>,
    /// Number of instances whose loss was accepted since everything was last settled. Together they may be
    /// a large loss.
    believed_meanwhile: usize,
}

/// The quality of the current data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// True if every service with a change was read.
    pub(super) is_settled: bool,
    /// True if everything is due to be read once more.
    pub(super) is_resync_due: bool,
    /// Number of trusted instances of services that are no longer listed and have not been read since.
    pub(super) going: usize,
    /// True if all reads succeeded.
    pub(super) is_whole: bool,
    /// True if the servers are known to hide services.
    pub(super) is_hidden: bool,
    pub(super) now: Instant,
}

/// The trusted services.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) services: Services,
    /// Number of their instances that the servers no longer know.
    pub(super) held: usize,
}

impl Guard {
    pub(super) fn new(options: ShrinkGuard) -> Self {
        Self {
            options,
            since: None,
            is_looking: false,
            is_in_doubt: false,
            waits_since: None,
            believed_meanwhile: 0,
        }
    }

    /// Marks the servers as having another history, or as back after an outage. Until everything was read
    /// once more, any loss is doubtful.
    pub(super) fn doubt(&mut self) {
        self.is_in_doubt = true;
    }

    /// Compares the servers' services with the trusted ones.
    pub(super) fn decide(
        &mut self,
        believed: &Services,
        said: &Services,
        sight: &Sight,
    ) -> Verdict {
        let all: usize = believed
            .values()
            .map(|service| service.instances.len())
            .sum();
        let lost = lost(believed, said);
        let count: usize = lost.values().map(Vec::len).sum();
        let is_held = count > 0 && (self.waits(sight) || self.holds(count, all, sight));
        if !is_held {
            self.believed(count, sight);
            return Verdict {
                services: said.clone(),
                held: 0,
            };
        }
        Verdict {
            services: with_lost(said, believed, &lost),
            // A loss that is not decided yet is not reported.
            held: if self.since.is_some() { count } else { 0 },
        }
    }

    /// Returns true if a loss is not decided yet, since its rest may still follow.
    fn waits(&mut self, sight: &Sight) -> bool {
        if sight.is_settled {
            self.waits_since = None;
            return false;
        }
        let since = *self.waits_since.get_or_insert(sight.now);
        sight.now < since + LONGEST
    }

    /// Returns true if a loss is held back.
    fn holds(&mut self, lost: usize, all: usize, sight: &Sight) -> bool {
        self.waits_since = None;
        let gone = lost + sight.going + self.believed_meanwhile;
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 instances")]
        let share = gone as f64 / (all + self.believed_meanwhile) as f64;
        let is_much = gone >= self.options.least && share > self.options.share;
        if self.since.is_none() {
            if !is_much && !sight.is_hidden && !self.is_in_doubt {
                return false;
            }
            self.since = Some(sight.now);
            return true;
        }
        if !sight.is_settled {
            return true;
        }
        // Everything was read once more since the time was over.
        let is_confirmed = self.is_looking && sight.is_whole && !sight.is_hidden;
        self.is_looking = false;
        !is_confirmed
    }

    /// Accepts a loss.
    fn believed(&mut self, lost: usize, sight: &Sight) {
        self.since = None;
        self.is_looking = false;
        self.waits_since = None;
        if !sight.is_settled {
            self.believed_meanwhile += lost;
            return;
        }
        self.believed_meanwhile = 0;
        if sight.is_whole && !sight.is_resync_due {
            self.is_in_doubt = false;
        }
    }

    /// Returns the time at which a loss is decided even if its rest may still follow.
    pub(super) fn decide_at(&self) -> Option<Instant> {
        self.waits_since.map(|since| since + LONGEST)
    }

    /// Returns the time of the second read.
    pub(super) fn look_at(&self) -> Option<Instant> {
        let since = self.since.filter(|_| !self.is_looking);
        since.map(|since| since + self.options.settle)
    }

    /// Starts the second read, of everything. If it confirms nothing, it is repeated after the same time.
    pub(super) fn look(&mut self, now: Instant) {
        self.is_looking = true;
        self.since = Some(now);
    }
}

/// Returns the positions of the instances that no longer exist.
fn lost(believed: &Services, said: &Services) -> BTreeMap<Arc<str>, Vec<usize>> {
    let mut lost = BTreeMap::new();
    for (name, before) in believed {
        let now = said.get(name);
        if now.is_some_and(|now| Arc::ptr_eq(now, before)) {
            continue;
        }
        let key = |service: &ServiceState, nth: usize| {
            let instance = &service.instances[nth];
            (instance.node.clone(), instance.id.clone())
        };
        let there: std::collections::BTreeSet<_> = now
            .map(|now| (0..now.instances.len()).map(|nth| key(now, nth)).collect())
            .unwrap_or_default();
        let gone: Vec<_> = (0..before.instances.len())
            .filter(|nth| !there.contains(&key(before, *nth)))
            .collect();
        if !gone.is_empty() {
            lost.insert(Arc::clone(name), gone);
        }
    }
    lost
}

/// Returns the servers' services with the lost instances added.
fn with_lost(
    said: &Services,
    believed: &Services,
    lost: &BTreeMap<Arc<str>, Vec<usize>>,
) -> Services {
    let mut services = said.clone();
    for (name, positions) in lost {
        let before = &believed[name].instances;
        let kept = positions.iter().map(|nth| before[*nth].clone());
        let mut instances: Vec<_> = kept.collect();
        if let Some(now) = said.get(name) {
            instances.extend(now.instances.iter().cloned());
        }
        instances.sort_by(|a, b| (&a.node, &a.id).cmp(&(&b.node, &b.id)));
        services.insert(Arc::clone(name), Arc::new(ServiceState { instances }));
    }
    services
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::watch::testing::services_with;

    const SETTLE: Duration = Duration::from_secs(10);

    fn sight(is_settled: bool, is_hidden: bool) -> Sight {
        Sight {
            is_settled,
            is_resync_due: false,
            going: 0,
            is_whole: true,
            is_hidden,
            now: Instant::now(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_loss_is_believed_when_everything_is_read() {
        let (before, after) = (services_with("a", 3), services_with("a", 2));
        let mut guard = Guard::new(ShrinkGuard::default());
        let meanwhile = guard.decide(&before, &after, &sight(false, false));
        assert_eq!((&meanwhile.services, meanwhile.held), (&before, 0));
        let verdict = guard.decide(&before, &after, &sight(true, false));
        assert_eq!((&verdict.services, verdict.held), (&after, 0));
        assert_eq!(guard.look_at(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_great_loss_is_believed_after_a_second_look() {
        let (before, after) = (services_with("a", 10), services_with("b", 1));
        let mut both = before.clone();
        both.extend(after.clone());
        let mut guard = Guard::new(ShrinkGuard::default());
        let first = guard.decide(&before, &after, &sight(true, false));
        assert_eq!(
            (&first.services, first.held),
            (&both, 10),
            "what is new applies"
        );
        assert_eq!(guard.look_at(), Some(Instant::now() + SETTLE));
        let early = guard.decide(&both, &after, &sight(true, false));
        assert_eq!(early.held, 10, "however often it is asked");

        tokio::time::advance(SETTLE).await;
        guard.look(Instant::now());
        assert_eq!(guard.decide(&both, &after, &sight(false, false)).held, 10);
        let confirmed = guard.decide(&both, &after, &sight(true, false));
        assert_eq!((&confirmed.services, confirmed.held), (&after, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_that_is_made_good_was_none() {
        let (before, nothing) = (services_with("a", 10), Services::new());
        let mut guard = Guard::new(ShrinkGuard::default());
        assert_eq!(
            guard.decide(&before, &nothing, &sight(true, false)).held,
            10
        );
        assert_eq!(guard.decide(&before, &before, &sight(true, false)).held, 0);
        assert_eq!(guard.look_at(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_that_is_made_good_bit_by_bit_is_held_to_its_end() {
        let before = services_with("a", 10);
        let mut guard = Guard::new(ShrinkGuard::default());
        guard.decide(&before, &Services::new(), &sight(true, false));
        for back in 1..10 {
            let verdict = guard.decide(&before, &services_with("a", back), &sight(true, false));
            assert_eq!((&verdict.services, verdict.held), (&before, 10 - back));
        }
        tokio::time::advance(SETTLE).await;
        guard.look(Instant::now());
        let last = services_with("a", 9);
        let verdict = guard.decide(&before, &last, &sight(true, false));
        assert_eq!((&verdict.services, verdict.held), (&last, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_confirmed_by_reads_that_fail_or_by_those_who_hide() {
        let (before, nothing) = (services_with("a", 10), Services::new());
        let mut guard = Guard::new(ShrinkGuard::default());
        guard.decide(&before, &nothing, &sight(true, false));
        guard.look(Instant::now());
        let torn = Sight {
            is_whole: false,
            ..sight(true, false)
        };
        assert_eq!(guard.decide(&before, &nothing, &torn).held, 10);
        assert!(guard.look_at().is_some(), "it is looked again");
        for _ in 0..3 {
            guard.look(Instant::now());
            assert_eq!(guard.decide(&before, &nothing, &sight(true, true)).held, 10);
        }
        // A small loss is not believed either.
        let less = services_with("a", 9);
        assert_eq!(guard.decide(&before, &less, &sight(true, true)).held, 1);
    }

    /// A hanging read does not keep instances that were lost elsewhere.
    #[tokio::test(start_paused = true)]
    async fn a_small_loss_is_believed_although_something_is_being_read_for_long() {
        let (before, after) = (services_with("a", 10), services_with("a", 9));
        let mut guard = Guard::new(ShrinkGuard::default());
        guard.decide(&before, &after, &sight(false, false));
        assert_eq!(guard.decide_at(), Some(Instant::now() + LONGEST));
        tokio::time::advance(LONGEST).await;
        let verdict = guard.decide(&before, &after, &sight(false, false));
        assert_eq!((&verdict.services, verdict.held), (&after, 0));
        assert_eq!(guard.decide_at(), None);
    }

    /// Small losses that add up to a large one are held, and announced losses count too.
    #[tokio::test(start_paused = true)]
    async fn small_losses_in_a_row_are_one_great_loss() {
        let mut guard = Guard::new(ShrinkGuard::default());
        let mut held_at = None;
        for left in (0..10).rev() {
            let (before, after) = (services_with("a", left + 1), services_with("a", left));
            guard.decide(&before, &after, &sight(false, false));
            tokio::time::advance(LONGEST).await;
            if guard.decide(&before, &after, &sight(false, false)).held > 0 {
                held_at = Some(left);
                break;
            }
        }
        assert_eq!(held_at, Some(4), "more than half of ten");

        let mut guard = Guard::new(ShrinkGuard::default());
        let (before, after) = (services_with("a", 10), services_with("a", 9));
        let announced = Sight {
            going: 9,
            ..sight(false, false)
        };
        guard.decide(&before, &after, &announced);
        tokio::time::advance(LONGEST).await;
        let announced = Sight {
            now: Instant::now(),
            ..announced
        };
        assert_eq!(guard.decide(&before, &after, &announced).held, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn any_loss_is_doubtful_while_the_servers_may_not_know_everything() {
        let (before, nothing) = (services_with("a", 1), Services::new());
        let mut guard = Guard::new(ShrinkGuard::default());
        guard.doubt();
        assert_eq!(guard.decide(&before, &nothing, &sight(true, false)).held, 1);
        tokio::time::advance(SETTLE).await;
        guard.look(Instant::now());
        assert_eq!(guard.decide(&before, &nothing, &sight(true, false)).held, 0);

        guard.doubt();
        let due = Sight {
            is_resync_due: true,
            ..sight(true, false)
        };
        guard.decide(&before, &before, &due);
        assert_eq!(guard.decide(&before, &nothing, &due).held, 1);
        guard.decide(&before, &before, &sight(true, false));
        let verdict = guard.decide(&before, &nothing, &sight(true, false));
        assert_eq!(verdict.held, 0, "everything was read since");
    }
}
