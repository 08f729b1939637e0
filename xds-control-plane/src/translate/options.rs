use std::sync::Arc;
use std::time::Duration;

/// How services are translated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranslateOptions {
    /// What the domains of the registry's services end with, without a dot before it. `local`.
    pub domain_suffix: Arc<str>,
    /// The ports that clients may write after a domain. 80.
    pub domain_ports: Vec<u16>,
    /// How long requests to services of the registry may take. 120 s.
    pub registry_timeout: Duration,
    /// How Envoy checks whether an endpoint lives.
    pub health_check: HealthCheckKind,
    /// Regular expressions are written as Envoys before 1.26 want them: `safe_regex_match` with `google_re2`. Newer ones
    /// accept that with warnings. Off.
    pub legacy_regex: bool,
    /// What the route configuration is called that HTTP listeners of the static file ask for. `main`.
    pub route_config: Arc<str>,
}

/// How Envoy checks whether an endpoint lives. The defaults in Consul say how often, and not how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HealthCheckKind {
    /// It does not; Consul's checks have to do.
    None,
    /// It accepts connections.
    #[default]
    Tcp,
    /// It answers a request for this path with 200; services that speak gRPC are asked by its health protocol, and those that
    /// speak neither are connected to.
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
