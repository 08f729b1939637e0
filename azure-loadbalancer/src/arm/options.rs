//! The options of a client.

use std::time::Duration;

/// Time limits, retries and versions of an [`ArmClient`](super::ArmClient).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArmOptions {
    /// The API version of the network provider. Default: `2025-05-01`.
    pub network_api_version: String,
    /// The API version of the compute provider. Default: `2026-04-01`.
    pub compute_api_version: String,
    /// The timeout of a call. Default: 60 s.
    pub call_timeout: Duration,
    /// The time limit for a write to complete. Default: 15 min.
    pub operation_timeout: Duration,
    /// The interval for polling a write if the resource manager gives none. It grows by half with each poll,
    /// up to 30 s. Default: 2 s.
    pub poll_interval: Duration,
    /// The retries of calls.
    pub retry: RetryPolicy,
    /// The maximum size of a response, in bytes. Default: 32 MiB.
    pub max_body: usize,
    /// The maximum number of items of a list, over all pages. Default: 100,000.
    pub max_items: usize,
    /// The maximum number of pages of a list. Default: 1,000.
    pub max_pages: usize,
    /// The maximum size of a list, over all pages, in bytes. Default: 256 MiB.
    pub max_list_bytes: usize,
}

/// The retries of a call after 408, 429, a status of 500 to 599, or no response. Defaults, factor and jitter
/// are those of Kubernetes' provider for Azure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first. Default: 6.
    pub tries: u32,
    /// The wait before the first retry. Default: 5 s.
    pub first: Duration,
    /// The factor by which each wait exceeds the one before. Default: 1.5.
    pub factor: f64,
    /// The maximum random addition to a wait, as a fraction of it. Default: 1.
    pub jitter: f64,
    /// The maximum wait. A 429 that requests a longer one is an error at once. A longer wait after 408, or a
    /// status of 500 or above, is shortened to this. Default: 2 min.
    pub longest: Duration,
}

impl Default for ArmOptions {
    fn default() -> Self {
        Self {
            network_api_version: "2025-05-01".to_owned(),
            compute_api_version: "2026-04-01".to_owned(),
            call_timeout: Duration::from_secs(60),
            operation_timeout: Duration::from_secs(15 * 60),
            poll_interval: Duration::from_secs(2),
            retry: RetryPolicy::default(),
            max_body: 32 * 1024 * 1024,
            max_items: 100_000,
            max_pages: 1_000,
            max_list_bytes: 256 * 1024 * 1024,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 6,
            first: Duration::from_secs(5),
            factor: 1.5,
            jitter: 1.0,
            longest: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// Creates a policy without retries.
    pub fn never() -> Self {
        Self {
            tries: 1,
            ..Self::default()
        }
    }

    /// Returns the wait before a retry after `tries` attempts.
    pub(crate) fn wait(&self, tries: u32) -> Duration {
        let exponent = i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX);
        let plain = self.first.as_secs_f64() * self.factor.powi(exponent);
        let jittered = plain * (1.0 + self.jitter * fastrand::f64());
        Duration::try_from_secs_f64(jittered).map_or(self.longest, |wait| wait.min(self.longest))
    }
}
