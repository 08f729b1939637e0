//! Whether it is believed that much is gone. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::options::ShrinkGuard;
use super::state::{ServiceState, Services};

/// Holds back that much is gone until it is confirmed; see [`ShrinkGuard`].
#[derive(Debug)]
pub(super) struct Guard {
    options: ShrinkGuard,
    /// Since when so much is gone.
    since: Option<Instant>,
    /// Whether the second look is under way.
    is_looking: bool,
}

/// How well it is seen what is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// Whether nothing is being read.
    pub(super) is_settled: bool,
    /// Whether everything that was asked for could be read.
    pub(super) is_whole: bool,
    /// Whether it is known that the servers do not tell us all.
    pub(super) is_hidden: bool,
    pub(super) now: Instant,
}

/// What is believed.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) services: Services,
    /// How many of their instances the servers do not know any more.
    pub(super) held: usize,
}

impl Guard {
    pub(super) fn new(options: ShrinkGuard) -> Self {
        Self {
            options,
            since: None,
            is_looking: false,
        }
    }

    /// Compares what the servers say with what was believed.
    pub(super) fn judge(&mut self, believed: &Services, said: &Services, sight: &Sight) -> Verdict {
        let all: usize = believed
            .values()
            .map(|service| service.instances.len())
            .sum();
        let lost = lost(believed, said);
        let count: usize = lost.values().map(Vec::len).sum();
        // While reads are under way the rest of a loss may be still to come.
        let is_held = count > 0 && (!sight.is_settled || self.holds(count, all, sight));
        if !is_held {
            self.since = None;
            self.is_looking = false;
            return Verdict {
                services: said.clone(),
                held: 0,
            };
        }
        Verdict {
            services: with_lost(said, believed, &lost),
            // A loss that is not judged yet is nothing to tell of.
            held: if self.since.is_some() { count } else { 0 },
        }
    }

    /// Whether a loss is held back, once everything is read.
    fn holds(&mut self, lost: usize, all: usize, sight: &Sight) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 instances")]
        let share = lost as f64 / all as f64;
        let is_much = lost >= self.options.least && share > self.options.share;
        if self.since.is_none() {
            if !is_much && !sight.is_hidden {
                return false;
            }
            self.since = Some(sight.now);
            return true;
        }
        // Everything was read once more since the time was over.
        let is_confirmed = self.is_looking && sight.is_whole && !sight.is_hidden;
        self.is_looking = false;
        !is_confirmed
    }

    /// When the second look is due.
    pub(super) fn look_at(&self) -> Option<Instant> {
        let since = self.since.filter(|_| !self.is_looking);
        since.map(|since| since + self.options.settle)
    }

    /// The second look begins: everything is going to be read. If that does not confirm anything, it is looked again after
    /// as long.
    pub(super) fn look(&mut self, now: Instant) {
        self.is_looking = true;
        self.since = Some(now);
    }
}

/// The positions of the instances that are not there any more.
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

/// What is said, and what is lost on top.
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
            is_whole: true,
            is_hidden,
            now: Instant::now(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_loss_is_believed_when_everything_is_read() {
        let (before, after) = (services_with("a", 3), services_with("a", 2));
        let mut guard = Guard::new(ShrinkGuard::default());
        let meanwhile = guard.judge(&before, &after, &sight(false, false));
        assert_eq!((&meanwhile.services, meanwhile.held), (&before, 0));
        let verdict = guard.judge(&before, &after, &sight(true, false));
        assert_eq!((&verdict.services, verdict.held), (&after, 0));
        assert_eq!(guard.look_at(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_great_loss_is_believed_after_a_second_look() {
        let (before, after) = (services_with("a", 10), services_with("b", 1));
        let mut both = before.clone();
        both.extend(after.clone());
        let mut guard = Guard::new(ShrinkGuard::default());
        let first = guard.judge(&before, &after, &sight(true, false));
        assert_eq!(
            (&first.services, first.held),
            (&both, 10),
            "what is new applies"
        );
        assert_eq!(guard.look_at(), Some(Instant::now() + SETTLE));
        let early = guard.judge(&both, &after, &sight(true, false));
        assert_eq!(early.held, 10, "however often it is asked");

        tokio::time::advance(SETTLE).await;
        guard.look(Instant::now());
        assert_eq!(guard.judge(&both, &after, &sight(false, false)).held, 10);
        let confirmed = guard.judge(&both, &after, &sight(true, false));
        assert_eq!((&confirmed.services, confirmed.held), (&after, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_that_is_made_good_was_none() {
        let (before, nothing) = (services_with("a", 10), Services::new());
        let mut guard = Guard::new(ShrinkGuard::default());
        assert_eq!(guard.judge(&before, &nothing, &sight(true, false)).held, 10);
        assert_eq!(guard.judge(&before, &before, &sight(true, false)).held, 0);
        assert_eq!(guard.look_at(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_that_is_made_good_bit_by_bit_is_held_to_its_end() {
        let before = services_with("a", 10);
        let mut guard = Guard::new(ShrinkGuard::default());
        guard.judge(&before, &Services::new(), &sight(true, false));
        for back in 1..10 {
            let verdict = guard.judge(&before, &services_with("a", back), &sight(true, false));
            assert_eq!((&verdict.services, verdict.held), (&before, 10 - back));
        }
        tokio::time::advance(SETTLE).await;
        guard.look(Instant::now());
        let last = services_with("a", 9);
        let verdict = guard.judge(&before, &last, &sight(true, false));
        assert_eq!((&verdict.services, verdict.held), (&last, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_confirmed_by_reads_that_fail_or_by_those_who_hide() {
        let (before, nothing) = (services_with("a", 10), Services::new());
        let mut guard = Guard::new(ShrinkGuard::default());
        guard.judge(&before, &nothing, &sight(true, false));
        guard.look(Instant::now());
        let torn = Sight {
            is_whole: false,
            ..sight(true, false)
        };
        assert_eq!(guard.judge(&before, &nothing, &torn).held, 10);
        assert!(guard.look_at().is_some(), "it is looked again");
        for _ in 0..3 {
            guard.look(Instant::now());
            assert_eq!(guard.judge(&before, &nothing, &sight(true, true)).held, 10);
        }
        // A small loss is none to believe either.
        let less = services_with("a", 9);
        assert_eq!(guard.judge(&before, &less, &sight(true, true)).held, 1);
    }
}
