//! The options and sources of a merge.

use std::fmt;
use std::time::Duration;

use proxy_model::CompileOptions;

use crate::provider::{ConfigProvider, Strictness};

/// A provider in a [`Merge`](super::Merge), with settings of its own.
pub struct MergeSource {
    pub(super) provider: Box<dyn ConfigProvider>,
    pub(super) prefix: Option<String>,
    strictness: Option<Strictness>,
    required: Option<bool>,
    pub(super) compile: Option<CompileOptions>,
}

impl MergeSource {
    /// Creates a source from a provider, without overrides.
    pub fn new(provider: impl ConfigProvider + 'static) -> Self {
        Self {
            provider: Box::new(provider),
            prefix: None,
            strictness: None,
            required: None,
            compile: None,
        }
    }

    /// Puts a prefix before the ids of all its routes and clusters, and where its routes name its own clusters, so that
    /// they cannot clash with another provider's.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets the handling of bad parts of its configuration. Default: the provider's.
    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = Some(strictness);
        self
    }

    /// Sets whether the merged configuration needs it to be ready. Default: the provider's.
    #[must_use]
    pub fn with_required(mut self, required: bool) -> Self {
        self.required = Some(required);
        self
    }

    /// Sets the names that its configuration may use. The merged configuration is compiled with those of the
    /// merge, so a name that no other provider defines is still an error there. Default: those of the merge.
    #[must_use]
    pub fn with_compile_options(mut self, options: CompileOptions) -> Self {
        self.compile = Some(options);
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

/// The options of a [`Merge`](super::Merge).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeOptions {
    /// The least time between two publications. Changes in between are published together. Default: 50 ms.
    pub min_gap: Duration,
    /// The time limit of all validators together. A change that is not validated by then is rejected, and
    /// retried with the next one. Default: 10 s.
    pub validate_timeout: Duration,
    /// The time limit for resolving one cluster. A change that brings new clusters waits at most this long
    /// for them to be resolved, and is then published without their destinations. Default: 5 s.
    pub resolve_timeout: Duration,
    /// Maximum number of clusters that are resolved at the same time. Default: 16.
    pub resolve_concurrency: usize,
    /// Maximum number of times that a change is retried without the parts that validators rejected, before
    /// it is rejected itself. Default: 16.
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

    /// Returns the options with all times short enough for calculations.
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
