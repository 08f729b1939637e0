//! The options of an executor.

use crate::arm::RetryPolicy;

/// The limits of an [`Executor`](super::Executor): attempts, and concurrency.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// The maximum number of rounds of reading, planning and writing. The count restarts after a rejection.
    /// Default: 4.
    pub max_rounds: u32,
    /// The maximum number of times that the services of a rejected write are halved to find the one
    /// responsible. After that the rejection counts against all of them. Finding one among a thousand takes
    /// ten. Default: 32.
    pub max_splits: u32,
    /// The number of immediate new plans after a concurrent write by another client. Later ones wait as in
    /// [`Self::backoff`]. Default: 3.
    pub immediate_replans: u32,
    /// The retries and waits of new plans while another client is writing. Default: 6 attempts, 5 s × 1.5.
    pub backoff: RetryPolicy,
    /// The maximum number of concurrent writes, among those that are independent. Default: 8.
    pub parallel_writes: usize,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self {
            max_rounds: 4,
            max_splits: 32,
            immediate_replans: 3,
            backoff: RetryPolicy::default(),
            parallel_writes: 8,
        }
    }
}
