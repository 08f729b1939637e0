//! The options for turning services into clusters and routes.

use std::time::Duration;

use proxy_model::config::RouteHeader;
use proxy_model::matching::HeaderMatcher;
use proxy_model::{Problem, Problems};

use crate::catalog::tags;

/// The path of probes for instances that name none, and for options with an unusable path.
pub(super) const DEFAULT_HEALTH_PATH: &str = "/health";

/// The options for turning services into clusters and routes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// The policy that picks a destination in all clusters: `LoadBalancingPolicy`. Default: `RoundRobin`.
    pub load_balancing_policy: String,
    /// Health probes.
    pub health: HealthOptions,
    /// The handling of the tag `weight`. Default: [`WeightStrategy::Weighted`].
    pub weights: WeightStrategy,
    /// The header by which requests select a version: a request whose header is the `version` of some
    /// instances goes to these, if its service has a route. A request for a version without instances goes
    /// to any instance. `None` to ignore versions. Default: `None`.
    pub version_header: Option<String>,
    /// The header by which requests select a region, in the same way. A request that selects a version and
    /// a region gets an instance with both if there is one, otherwise one of the version. `None` to ignore
    /// regions. Default: `None`.
    pub region_header: Option<String>,
    /// True to add `version` and `region` to the metadata of destinations. A change of only these is then a change
    /// of the configuration. Default: true.
    pub informational_tags: bool,
}

/// Health probes: `HealthCheck.Active` of all clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthOptions {
    /// True to probe destinations. Default: true.
    pub enabled: bool,
    /// The time from the end of one cycle of probes to the start of the next. Default: 2 s.
    pub interval: Duration,
    /// The time limit of a probe. Default: 1 s.
    pub timeout: Duration,
    /// The path of probes of instances without a `health-path`. Default: `/health`.
    pub path: String,
}

/// The handling of the tag `weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightStrategy {
    /// The tag is the weight of the destination, which the balancer uses.
    #[default]
    Weighted,
    /// The tag is the number of copies of the destination, for balancers without weights: `x#0`, `x#1` and
    /// `x#2` for an instance `x` of weight 3. Each copy is probed. An instance of weight 0 has one copy,
    /// with the weight 0. A cluster has at most 1,000 copies, or as many as it has instances if these are
    /// more; beyond that, there are fewer copies in about the same proportion.
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
    /// Sets the policy that picks a destination.
    #[must_use]
    pub fn with_load_balancing_policy(mut self, policy: impl Into<String>) -> Self {
        self.load_balancing_policy = policy.into();
        self
    }

    /// Sets the options of health probes.
    #[must_use]
    pub fn with_health(mut self, health: HealthOptions) -> Self {
        self.health = health;
        self
    }

    /// Sets the handling of weights.
    #[must_use]
    pub fn with_weights(mut self, strategy: WeightStrategy) -> Self {
        self.weights = strategy;
        self
    }

    /// Sets the header by which requests select a version.
    #[must_use]
    pub fn with_version_header(mut self, name: impl Into<String>) -> Self {
        self.version_header = Some(name.into());
        self
    }

    /// Sets the header by which requests select a region.
    #[must_use]
    pub fn with_region_header(mut self, name: impl Into<String>) -> Self {
        self.region_header = Some(name.into());
        self
    }

    /// Enables or disables `version` and `region` in the metadata of destinations.
    #[must_use]
    pub fn with_informational_tags(mut self, exported: bool) -> Self {
        self.informational_tags = exported;
        self
    }

    /// Returns the problems of the options themselves. Unusable options are ignored, so that no service is
    /// affected.
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

    /// The header of versions, if it is usable.
    pub(super) fn usable_version_header(&self) -> Option<&str> {
        let name = self.version_header.as_deref();
        name.filter(|name| is_header_name(name))
    }

    /// The header of regions, if it is usable and not that of versions.
    pub(super) fn usable_region_header(&self) -> Option<&str> {
        let name = self.region_header.as_deref();
        let name = name.filter(|name| is_header_name(name))?;
        let version = self.usable_version_header();
        (!version.is_some_and(|version| same_name((version, name)))).then_some(name)
    }
}

impl HealthOptions {
    /// Enables or disables probes.
    #[must_use]
    pub fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets the time between cycles of probes.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the time limit of a probe.
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

    /// The path, if it is usable by the rules of the tag.
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
