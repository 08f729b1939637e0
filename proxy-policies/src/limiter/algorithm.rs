//! The ways of counting, as .NET's `System.Threading.RateLimiting` has them. Pure: the time is given.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::LimiterKind;

/// The count of one partition.
#[derive(Clone, Debug)]
pub(super) enum Count {
    FixedWindow {
        permits: u32,
        window: Duration,
        /// The start of the current window. Windows follow each other from the first request on.
        start: Instant,
        left: u32,
    },
    SlidingWindow {
        permits: u32,
        segment: Duration,
        /// The start of the current segment.
        start: Instant,
        /// The permits taken in each of the last segments, a ring.
        taken: Box<[u32]>,
        current: usize,
        left: u32,
    },
    TokenBucket {
        tokens: u32,
        per_period: u32,
        period: Duration,
        /// The last time at which tokens were added.
        filled: Instant,
        left: u32,
    },
    Concurrency {
        permits: u32,
        left: u32,
    },
}

/// The state of a limit, as response headers report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(super) left: u32,
    /// The time until more are left. `None` if time alone changes nothing.
    pub(super) reset: Option<Duration>,
}

impl Count {
    /// Creates a limit with nothing used.
    pub(super) fn new(kind: LimiterKind, now: Instant) -> Self {
        match kind {
            LimiterKind::FixedWindow { permits, window } => Self::FixedWindow {
                permits,
                window: window.duration(),
                start: now,
                left: permits,
            },
            LimiterKind::SlidingWindow {
                permits,
                window,
                segments,
            } => Self::SlidingWindow {
                permits,
                segment: window.duration() / segments,
                start: now,
                taken: vec![0; segments as usize].into(),
                current: 0,
                left: permits,
            },
            LimiterKind::TokenBucket {
                tokens,
                per_period,
                period,
            } => Self::TokenBucket {
                tokens,
                per_period,
                period: period.duration(),
                filled: now,
                left: tokens,
            },
            LimiterKind::Concurrency { permits } => Self::Concurrency {
                permits,
                left: permits,
            },
        }
    }

    /// Takes one permit, if one is left.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let left = match self {
            Self::FixedWindow { left, .. }
            | Self::TokenBucket { left, .. }
            | Self::Concurrency { left, .. } => left,
            Self::SlidingWindow {
                taken,
                current,
                left,
                ..
            } => {
                if *left > 0 {
                    taken[*current] += 1;
                }
                left
            }
        };
        let is_left = *left > 0;
        *left -= u32::from(is_left);
        is_left
    }

    /// Undoes a [`take`](Self::take) whose request is gone before it was let pass.
    pub(super) fn untake(&mut self) {
        match self {
            Self::FixedWindow { permits, left, .. } | Self::Concurrency { permits, left } => {
                *left = (*left + 1).min(*permits);
            }
            Self::TokenBucket { tokens, left, .. } => *left = (*left + 1).min(*tokens),
            Self::SlidingWindow {
                taken,
                current,
                left,
                ..
            } => {
                // It may have been taken in a segment before, and is free again with that one.
                if let Some(less) = taken[*current].checked_sub(1) {
                    taken[*current] = less;
                    *left += 1;
                }
            }
        }
    }

    /// Gives back a permit of a request that has ended.
    pub(super) fn give_back(&mut self) {
        if let Self::Concurrency { permits, left } = self {
            *left = (*left + 1).min(*permits);
        }
    }

    /// Adds what time has brought.
    pub(super) fn refill(&mut self, now: Instant) {
        match self {
            Self::FixedWindow {
                permits,
                window,
                start,
                left,
            } => {
                let passed = whole(now, *start, *window);
                if passed > 0 {
                    *start = later(*start, *window, passed, now);
                    *left = *permits;
                }
            }
            Self::SlidingWindow {
                permits,
                segment,
                start,
                taken,
                current,
                left,
            } => {
                let passed = whole(now, *start, *segment);
                if passed == 0 {
                    return;
                }
                *start = later(*start, *segment, passed, now);
                if passed >= taken.len() as u64 {
                    taken.fill(0);
                    *left = *permits;
                    return;
                }
                for _ in 0..passed {
                    *current = (*current + 1) % taken.len();
                    // What was taken a whole window ago is free again.
                    *left += std::mem::take(&mut taken[*current]);
                }
            }
            Self::TokenBucket {
                tokens,
                per_period,
                period,
                filled,
                left,
            } => {
                let passed = whole(now, *filled, *period);
                if passed > 0 {
                    *filled = later(*filled, *period, passed, now);
                    let added = u64::from(*per_period).saturating_mul(passed);
                    let full = u64::from(*left).saturating_add(added);
                    *left = full.min(u64::from(*tokens)) as u32;
                }
            }
            Self::Concurrency { .. } => {}
        }
    }

    /// Returns true if nothing is taken, so that a new count is the same.
    pub(super) fn is_whole(&mut self, now: Instant) -> bool {
        self.refill(now);
        match self {
            Self::FixedWindow { permits, left, .. }
            | Self::SlidingWindow { permits, left, .. }
            | Self::Concurrency { permits, left } => left == permits,
            Self::TokenBucket { tokens, left, .. } => left == tokens,
        }
    }

    /// Returns the remaining permits, and the time until more are available.
    pub(super) fn standing(&mut self, now: Instant) -> Standing {
        self.refill(now);
        match self {
            Self::FixedWindow {
                window,
                start,
                left,
                ..
            } => Standing {
                left: *left,
                reset: Some((*start + *window).saturating_duration_since(now)),
            },
            Self::SlidingWindow {
                segment,
                start,
                taken,
                current,
                left,
                ..
            } => {
                // The oldest segment in which something was taken is the next to be free again.
                let ring = taken.len();
                let steps = (1..=ring).find(|step| taken[(*current + step) % ring] > 0);
                let steps = steps.unwrap_or(1) as u32;
                Standing {
                    left: *left,
                    reset: Some((*start + *segment * steps).saturating_duration_since(now)),
                }
            }
            Self::TokenBucket {
                period,
                filled,
                left,
                ..
            } => Standing {
                left: *left,
                reset: Some((*filled + *period).saturating_duration_since(now)),
            },
            Self::Concurrency { left, .. } => Standing {
                left: *left,
                reset: None,
            },
        }
    }
}

/// Returns the number of whole periods between two times.
fn whole(now: Instant, since: Instant, period: Duration) -> u64 {
    let passed = now.saturating_duration_since(since).as_nanos();
    let whole = passed / period.as_nanos().max(1);
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// The start of the period in which `now` is.
fn later(start: Instant, period: Duration, passed: u64, now: Instant) -> Instant {
    match u32::try_from(passed) {
        Ok(passed) => start + period * passed,
        // After that many periods, their phase of the periods is forgotten.
        Err(_) => now,
    }
}
