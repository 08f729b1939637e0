//! The waits after failures.

use super::config::{HostingConfig, Profile};
use super::timestamp::Span;

/// The growth of the wait before a crashed process restarts, by its consecutive failures (`n`, from 1).
///
/// Package activations and downloads know nothing of this: their waits always grow linearly.
///
/// The setting `ActivationRetryBackoffExponentiationBase` is a number. The documentation lets 0 mean both
/// constant and linear; its worked example (10, 20, 30, 40 s) decides for linear. A base of 1 is constant,
/// since 1ⁿ = 1.
///
/// ```
/// use servicefabric_emulator::hosting::{BackoffMode, Span};
///
/// let ten = Span::from_secs(10);
/// let waits = |mode: BackoffMode| [1, 2, 3, 4].map(|n| mode.wait(ten, n).to_string());
/// assert_eq!(waits(BackoffMode::Constant), ["10s", "10s", "10s", "10s"]);
/// assert_eq!(waits(BackoffMode::Linear), ["10s", "20s", "30s", "40s"]);
/// assert_eq!(waits(BackoffMode::Exponential(1.5)), ["15s", "22.5s", "33.75s", "50.625s"]);
///
/// assert_eq!(BackoffMode::from_raw(0.0), Some(BackoffMode::Linear));
/// assert_eq!(BackoffMode::from_raw(1.0), Some(BackoffMode::Constant));
/// assert_eq!(BackoffMode::from_raw(1.5), Some(BackoffMode::Exponential(1.5)));
/// assert_eq!(BackoffMode::from_raw(-1.0), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BackoffMode {
    /// Always the interval.
    Constant,
    /// n times the interval.
    Linear,
    /// The interval times this base to the power of n. A base below 1 counts as 1: waits never shrink.
    Exponential(f64),
}

impl BackoffMode {
    /// Returns the mode for a raw base. `None` if it cannot be a base: negative, infinite, not a number. A
    /// base between 0 and 1, whose waits would shrink, counts as 1.
    pub fn from_raw(base: f64) -> Option<Self> {
        if !base.is_finite() || base < 0.0 {
            None
        } else if base == 0.0 {
            Some(Self::Linear)
        } else if base <= 1.0 {
            Some(Self::Constant)
        } else {
            Some(Self::Exponential(base))
        }
    }

    /// Returns the wait after `failures` consecutive failures, without a limit, rounded to milliseconds (half
    /// away from zero).
    pub fn wait(self, interval: Span, failures: u32) -> Span {
        self.scaled(interval, failures, |factor| factor)
    }

    /// Returns the wait as the runtime's source computes it: the power is truncated to a whole number.
    ///
    /// ```
    /// use servicefabric_emulator::hosting::{BackoffMode, Span};
    ///
    /// let waits = [1, 2, 3, 4, 5, 6].map(|n| BackoffMode::Exponential(1.5).truncated_wait(Span::from_secs(10), n));
    /// assert_eq!(waits.map(|wait| wait.as_millis() / 1000), [10, 20, 30, 50, 70, 110]);
    /// ```
    pub fn truncated_wait(self, interval: Span, failures: u32) -> Span {
        self.scaled(interval, failures, f64::trunc)
    }

    fn scaled(self, interval: Span, failures: u32, round: fn(f64) -> f64) -> Span {
        let base = match self {
            Self::Constant => return interval,
            Self::Linear => return interval.saturating_mul(failures.into()),
            Self::Exponential(base) => base,
        };
        // Zero stays zero, even with infinitely many failures.
        if interval == Span::ZERO || interval.is_infinite() {
            return interval;
        }
        // `powi` may differ between machines; repeated products do not. The loop ends when the product stops
        // growing.
        let base = if base > 1.0 { base } else { 1.0 };
        let mut power = 1.0_f64;
        for _ in 0..failures {
            let next = power * base;
            if next == power || next.is_infinite() {
                power = next;
                break;
            }
            power = next;
        }
        // An overflow saturates to the largest value, which is infinite.
        Span::from_millis((interval.as_millis() as f64 * round(power)).round() as u64)
    }
}

/// Returns the wait before a crashed process restarts.
pub(super) fn restart_wait(config: &HostingConfig, failures: u32, jitter: Span) -> Span {
    let (mode, interval) = (
        config.activation_retry_backoff,
        config.activation_retry_backoff_interval,
    );
    let wait = match config.profile {
        Profile::Documented => mode.wait(interval, failures),
        Profile::Runtime64 => mode.truncated_wait(interval, failures),
    };
    wait.saturating_add(jitter)
        .min(config.activation_max_retry_interval)
}

/// Returns the wait before a failed download or activation is retried: an interval for each failure, at least
/// one, and never more than the maximum.
pub(super) fn retry_wait(interval: Span, cap: Span, failures: u32) -> Span {
    interval.saturating_mul(failures.max(1).into()).min(cap)
}
