//! The source of random numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers: the thread's generator, or a repeatable sequence for tests.
#[derive(Debug, Default)]
pub(crate) enum Random {
    /// The thread's generator, which the system seeds. Not for secrets.
    #[default]
    Thread,
    /// The sequence of a seed, in the order of the calls.
    Seeded(AtomicU64),
}

impl Random {
    /// The sequence that follows from `seed`.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(AtomicU64::new(seed))
    }

    /// A uniform number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        if bound < 2 {
            return 0;
        }
        match self {
            Self::Thread => fastrand::u64(..bound),
            Self::Seeded(state) => {
                // The high half of a product maps 64 bits to the range without a division. Some numbers come up more
                // often by at most bound / 2^64.
                ((u128::from(split_mix(state)) * u128::from(bound)) >> 64) as u64
            }
        }
    }

    /// Changes `value` at random by up to `share` in either direction, so that periodic work does
    /// not synchronise.
    pub(crate) fn jitter(&self, value: std::time::Duration, share: f64) -> std::time::Duration {
        const STEPS: u64 = 1 << 20;
        let part = self.below(STEPS + 1) as f64 / STEPS as f64;
        value.mul_f64(1.0 + share * (2.0 * part - 1.0))
    }
}

/// One step of SplitMix64. Threads may call it at the same time.
fn split_mix(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        for random in [Random::default(), Random::seeded(1)] {
            for bound in [0, 1, 2, 3, 10, u64::MAX] {
                let mut highest = 0;
                for _ in 0..200 {
                    let number = random.below(bound);
                    assert!(number < bound.max(1));
                    highest = highest.max(number);
                }
                assert!(highest >= bound.saturating_sub(1) / 2, "{bound}: {highest}");
            }
        }
    }

    #[test]
    fn a_seed_repeats() {
        let draw = || {
            let random = Random::seeded(7);
            (0..10).map(|_| random.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
    }

    #[test]
    fn jitter_stays_within_its_share() {
        let random = Random::seeded(3);
        let drawn: Vec<_> = (0..1_000)
            .map(|_| random.jitter(Duration::from_secs(10), 0.1))
            .collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*least >= Duration::from_secs(9) && *least < Duration::from_millis(9_100));
        assert!(*most <= Duration::from_secs(11) && *most > Duration::from_millis(10_900));
    }
}
