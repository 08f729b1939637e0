//! What can be chosen about an executor.

use crate::arm::RetryPolicy;

/// How often an [`Executor`](super::Executor) tries, and how much it does at a time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// Rounds of reading, planning and writing until nothing is left to do; they are counted anew after a refusal. Default: 4.
    pub max_rounds: u32,
    /// How often the services of a refused write are halved in order to find out whom it was refused for; after that it is held
    /// against all of them. One that is wrong among a thousand takes ten. Default: 32.
    pub max_splits: u32,
    /// How often a plan is made again at once because somebody else has written meanwhile; after that with the waits of
    /// [`Self::backoff`]. Default: 3.
    pub immediate_replans: u32,
    /// How often, and after which waits, a plan is made again when somebody else is writing. Default: 6 tries, 5 s × 1.5.
    pub backoff: RetryPolicy,
    /// Writes at a time, among those that do not wait for each other. Default: 8.
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
