use std::sync::Arc;
use std::time::Duration;

/// The options of the translation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranslateOptions {
    /// The suffix of the domains of the registry's services, without a dot before it. Default: `local`.
    pub domain_suffix: Arc<str>,
    /// The ports that clients may append to a domain. Default: 80.
    pub domain_ports: Vec<u16>,
    /// The time limit of requests to services of the registry. Default: 120 s.
    pub registry_timeout: Duration,
    /// The health check of endpoints by Envoy.
    pub health_check: HealthCheckKind,
    /// True to write regular expressions for Envoys before 1.26: `safe_regex_match` with `google_re2`.
    /// Newer ones accept that with warnings. Default: false.
    pub legacy_regex: bool,
    /// Name of the route configuration for HTTP listeners of the static file. Default: `main`.
    pub route_config: Arc<str>,
}

/// The health check of endpoints by Envoy. The settings in Consul contain its intervals, but not its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HealthCheckKind {
    /// No check by Envoy; only Consul's checks apply.
    None,
    /// A check that the endpoint accepts connections.
    #[default]
    Tcp,
    /// A check that the endpoint answers a request for this path with 200. Services with gRPC are checked
    /// by its health protocol, and those with neither protocol by connecting.
    Http(Arc<str>),
}

impl Default for TranslateOptions {
    fn default() -> Self {
        Self {
            domain_suffix: "local".into(),
            domain_ports: vec![80],
            registry_timeout: Duration::from_secs(120),
            health_check: HealthCheckKind::default(),
            legacy_regex: false,
            route_config: "main".into(),
        }
    }
}
