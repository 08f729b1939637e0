//! How services become clusters and routes.

use std::time::Duration;

use proxy_model::config::RouteHeader;
use proxy_model::matching::HeaderMatcher;
use proxy_model::{Problem, Problems};

use crate::catalog::tags;

/// The path of probes for who names none, and where the options name one that cannot be used.
pub(super) const DEFAULT_HEALTH_PATH: &str = "/health";

/// How services become clusters and routes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// How a destination is picked, in all clusters: `LoadBalancingPolicy`. Default `RoundRobin`.
    pub load_balancing_policy: String,
    /// Health probes.
    pub health: HealthOptions,
    /// What becomes of the tag `weight`. Default [`WeightStrategy::Weighted`].
    pub weights: WeightStrategy,
    /// The header in which requests ask for a version: a request whose header is the `version` of some instances goes to
    /// these, if its service has a route. One that asks for a version that nobody has goes to any. Unset, which is the
    /// default: none.
    pub version_header: Option<String>,
    /// The header in which requests ask for a region, in the same way. A request that asks for both gets both, if there is
    /// such an instance, else the version. Unset, which is the default: none.
    pub region_header: Option<String>,
    /// Whether destinations have `version` and `region` in their metadata. Then a change of these alone is a change of the
    /// configuration. Default true.
    pub informational_tags: bool,
}

/// Health probes: `HealthCheck.Active` of all clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthOptions {
    /// Whether destinations are probed. Default true.
    pub enabled: bool,
    /// From the end of one round of probes to the start of the next. Default 2 s.
    pub interval: Duration,
    /// How long a probe may take. Default 1 s.
    pub timeout: Duration,
    /// The path of probes of instances without a `health-path`. Default `/health`.
    pub path: String,
}

/// What becomes of the tag `weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightStrategy {
    /// It is the weight of the destination, which the balancer goes by.
    #[default]
    Weighted,
    /// There are so many destinations, for balancers that know of no weights: `x#0`, `x#1` and `x#2` for an instance `x` of
    /// weight 3. Each of them is probed. One of weight 0 is there once, with the weight 0. Where that would be more than
    /// 1,000 destinations in a cluster, and more than it has instances, there are fewer, in about the same proportion.
    Duplicate,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            load_balancing_policy: "RoundRobin".to_owned(),
            health: HealthOptions::default(),
            weights: WeightStrategy::default(),
            version_header: None,
            region_header: None,
            informational_tags: true,
        }
    }
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            path: DEFAULT_HEALTH_PATH.to_owned(),
        }
    }
}

impl GenerateOptions {
    /// Sets how a destination is picked.
    #[must_use]
    pub fn with_load_balancing_policy(mut self, policy: impl Into<String>) -> Self {
        self.load_balancing_policy = policy.into();
        self
    }

    /// Sets how destinations are probed.
    #[must_use]
    pub fn with_health(mut self, health: HealthOptions) -> Self {
        self.health = health;
        self
    }

    /// Sets what becomes of weights.
    #[must_use]
    pub fn with_weights(mut self, strategy: WeightStrategy) -> Self {
        self.weights = strategy;
        self
    }

    /// Sets the header in which requests ask for a version.
    #[must_use]
    pub fn with_version_header(mut self, name: impl Into<String>) -> Self {
        self.version_header = Some(name.into());
        self
    }

    /// Sets the header in which requests ask for a region.
    #[must_use]
    pub fn with_region_header(mut self, name: impl Into<String>) -> Self {
        self.region_header = Some(name.into());
        self
    }

    /// Sets whether destinations have `version` and `region` in their metadata.
    #[must_use]
    pub fn with_informational_tags(mut self, exported: bool) -> Self {
        self.informational_tags = exported;
        self
    }

    /// What is wrong with the options themselves. What cannot be used is left away, so that no service suffers from it.
    pub fn check(&self) -> Problems {
        let mut problems = Problems::new();
        let version = self.version_header.as_deref();
        let region = self.region_header.as_deref();
        for (pointer, name) in [("/VersionHeader", version), ("/RegionHeader", region)] {
            let Some(name) = name.filter(|name| !is_header_name(name)) else {
                continue;
            };
            let message = format!("{name:?} is not the name of a header, and is not used");
            problems.push(Problem::warning(pointer, "invalid_header_name", message));
        }
        if version.zip(region).is_some_and(same_name) {
            let message =
                "the header of versions is that of regions as well, and is used for versions only";
            problems.push(Problem::warning(
                "/RegionHeader",
                "duplicate_header",
                message,
            ));
        }
        if self.health.enabled && self.health.checked_path().is_none() {
            let message = format!(
                "{:?} is not the path of a probe, and `{DEFAULT_HEALTH_PATH}` is used",
                self.health.path
            );
            problems.push(Problem::warning(
                "/HealthCheck/Path",
                "invalid_probe_path",
                message,
            ));
        }
        problems
    }

    /// The header of versions, if it can be one.
    pub(super) fn usable_version_header(&self) -> Option<&str> {
        let name = self.version_header.as_deref();
        name.filter(|name| is_header_name(name))
    }

    /// The header of regions, if it can be one and is not that of versions.
    pub(super) fn usable_region_header(&self) -> Option<&str> {
        let name = self.region_header.as_deref();
        let name = name.filter(|name| is_header_name(name))?;
        let version = self.usable_version_header();
        (!version.is_some_and(|version| same_name((version, name)))).then_some(name)
    }
}

impl HealthOptions {
    /// Sets whether destinations are probed.
    #[must_use]
    pub fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets the time between rounds of probes.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets how long a probe may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the path of probes.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// The path, if it can be one: the rules are those of the tag.
    pub(super) fn checked_path(&self) -> Option<String> {
        tags::health_path(self.path.as_bytes()).ok().flatten()
    }
}

fn is_header_name(name: &str) -> bool {
    let header = RouteHeader {
        name: name.to_owned(),
        values: Some(vec!["any".to_owned()]),
        ..RouteHeader::default()
    };
    HeaderMatcher::new(&header).is_ok()
}

fn same_name((one, other): (&str, &str)) -> bool {
    one.eq_ignore_ascii_case(other)
}
