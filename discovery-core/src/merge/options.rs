//! How a merge behaves, and what it is made of.

use std::fmt;
use std::time::Duration;

use crate::provider::{ConfigProvider, Strictness};

/// A provider in a [`Merge`](super::Merge), with settings of its own.
pub struct MergeSource {
    pub(super) provider: Box<dyn ConfigProvider>,
    pub(super) prefix: Option<String>,
    strictness: Option<Strictness>,
    required: Option<bool>,
}

impl MergeSource {
    /// A provider as it is.
    pub fn new(provider: impl ConfigProvider + 'static) -> Self {
        Self {
            provider: Box::new(provider),
            prefix: None,
            strictness: None,
            required: None,
        }
    }

    /// Puts a prefix before the ids of all its routes and clusters, and where its routes name its own clusters, so that
    /// they cannot clash with another provider's.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets what happens when a part of its configuration is bad. Unset: what the provider says.
    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = Some(strictness);
        self
    }

    /// Sets whether the merged configuration is not ready without it. Unset: what the provider says.
    #[must_use]
    pub fn with_required(mut self, required: bool) -> Self {
        self.required = Some(required);
        self
    }

    pub(super) fn strictness(&self) -> Strictness {
        self.strictness
            .unwrap_or_else(|| self.provider.strictness())
    }

    pub(super) fn is_required(&self) -> bool {
        self.required.unwrap_or_else(|| self.provider.is_required())
    }
}

impl fmt::Debug for MergeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeSource")
            .field("provider", &self.provider.name())
            .field("prefix", &self.prefix)
            .field("strictness", &self.strictness())
            .field("required", &self.is_required())
            .finish()
    }
}

/// How a [`Merge`](super::Merge) behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeOptions {
    /// The least time between two publications: what changes meanwhile is published together, the last of it winning.
    /// 50 ms.
    pub min_gap: Duration,
    /// How long the validators may take together. 10 s. Then the change is refused, and tried again with the next one.
    pub validate_timeout: Duration,
    /// How long resolving one cluster may take. 5 s. A change that brings new clusters waits so long at most for them
    /// to be resolved, and is published without their destinations then.
    pub resolve_timeout: Duration,
    /// How many clusters are resolved at the same time. 16.
    pub resolve_concurrency: usize,
    /// How often a change is tried again without what validators objected to, before it is refused. 16.
    pub max_objections: usize,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self {
            min_gap: Duration::from_millis(50),
            validate_timeout: Duration::from_secs(10),
            resolve_timeout: Duration::from_secs(5),
            resolve_concurrency: 16,
            max_objections: 16,
        }
    }
}

impl MergeOptions {
    /// Sets [`min_gap`](Self::min_gap).
    #[must_use]
    pub fn with_min_gap(mut self, gap: Duration) -> Self {
        self.min_gap = gap;
        self
    }

    /// Sets [`validate_timeout`](Self::validate_timeout).
    #[must_use]
    pub fn with_validate_timeout(mut self, timeout: Duration) -> Self {
        self.validate_timeout = timeout;
        self
    }

    /// Sets [`resolve_timeout`](Self::resolve_timeout).
    #[must_use]
    pub fn with_resolve_timeout(mut self, timeout: Duration) -> Self {
        self.resolve_timeout = timeout;
        self
    }

    /// Sets [`resolve_concurrency`](Self::resolve_concurrency).
    #[must_use]
    pub fn with_resolve_concurrency(mut self, clusters: usize) -> Self {
        self.resolve_concurrency = clusters;
        self
    }

    /// Sets [`max_objections`](Self::max_objections).
    #[must_use]
    pub fn with_max_objections(mut self, times: usize) -> Self {
        self.max_objections = times;
        self
    }

    /// The same with every time short enough to be counted with.
    pub(super) fn bounded(mut self) -> Self {
        const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
        for time in [
            &mut self.min_gap,
            &mut self.validate_timeout,
            &mut self.resolve_timeout,
        ] {
            *time = (*time).min(LONGEST);
        }
        self
    }
}
