//! The configuration file of a control plane.

mod limits;
#[cfg(feature = "providers")]
mod policies;
#[cfg(feature = "providers")]
mod providers;
mod read;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use discovery_consul::options::DiscoveryOptions;
use proxy_model::json::ObjectReader;
use proxy_model::{Problems, yaml};

pub use self::limits::LimitsSection;
#[cfg(feature = "providers")]
pub use self::providers::{ProviderError, ProvidersSection};
use crate::assemble::ResourceOptions;
use crate::pipeline::PipelineOptions;
use crate::server::ServerOptions;
#[cfg(feature = "tls")]
use crate::server::ServerTls;
use crate::sources::ConsulSourceOptions;
use crate::translate::{CONSUL, HealthCheckKind, REGISTRY, STATIC, TranslateOptions};

/// The port of the third version of the protocol.
const XDS_PORT: u16 = 1701;

/// The port of the admin API.
const ADMIN_PORT: u16 = 1702;

/// A configuration file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The address of the xDS server. Default: `127.0.0.1:1701`.
    pub listen: SocketAddr,
    /// The TLS options of the xDS server. `None` to serve without TLS.
    pub tls: Option<TlsSection>,
    /// The address of the admin API. Default: `127.0.0.1:1702`.
    pub admin: SocketAddr,
    /// Host names that requests to the admin API may contain, in addition to IP addresses and `localhost`.
    pub admin_hosts: Vec<String>,
    /// The limits of clients of the xDS server.
    pub limits: LimitsSection,
    /// Name of the control plane's cluster in the bootstrap of the Envoys. Default: `xds`.
    pub xds_cluster: Arc<str>,
    /// Name of the route configuration. Default: `main`.
    pub route_config: Arc<str>,
    /// The suffix of the domains of the registry's services.
    pub domain_suffix: Arc<str>,
    /// The ports that clients may append to a domain.
    pub domain_ports: Vec<u16>,
    /// The time limit of requests to services of the registry.
    pub registry_timeout: Duration,
    /// The health check of endpoints by Envoy.
    pub health_check: HealthCheckKind,
    /// True to write regular expressions in the format of old Envoys.
    pub legacy_regex: bool,
    /// The time for which changes of endpoints are gathered.
    pub endpoint_quiet: Duration,
    /// The time without changes of the sources after which anything else is served.
    pub config_quiet: Duration,
    /// The longest wait for that time.
    pub config_max: Duration,
    /// The file that keeps the last served snapshot.
    pub persist: Option<PathBuf>,
    /// The time limit for reading the sources, after which that snapshot is served.
    pub persist_after: Duration,
    /// The registry.
    pub registry: Option<RegistrySection>,
    /// The Consul.
    pub consul: Option<DiscoveryOptions>,
    /// The static file.
    pub static_file: Option<PathBuf>,
    /// Sources that gateways of this project have too.
    #[cfg(feature = "providers")]
    pub providers: ProvidersSection,
}

/// TLS of the xDS server, as PEM files that are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSection {
    /// The server's certificate and its chain.
    pub certificate_file: PathBuf,
    /// The private key of the certificate.
    pub key_file: PathBuf,
    /// The authorities that client certificates must be issued by. If set, clients need a certificate.
    pub client_ca_file: Option<PathBuf>,
}

/// The location of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrySection {
    /// A file.
    File(PathBuf),
    /// Behind a URL.
    Http {
        /// The URL.
        url: url::Url,
        /// The time for which a request waits for a change. `None` to poll.
        wait: Option<Duration>,
        /// The poll interval, from the last response.
        poll: Duration,
        /// A file with a token.
        token_file: Option<PathBuf>,
    },
}

impl Default for Config {
    fn default() -> Self {
        let translate = TranslateOptions::default();
        let pipeline = PipelineOptions::default();
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            listen: loopback(XDS_PORT),
            tls: None,
            admin: loopback(ADMIN_PORT),
            admin_hosts: Vec::new(),
            limits: LimitsSection::default(),
            xds_cluster: ResourceOptions::default().xds_cluster,
            route_config: translate.route_config,
            domain_suffix: translate.domain_suffix,
            domain_ports: translate.domain_ports,
            registry_timeout: translate.registry_timeout,
            health_check: translate.health_check,
            legacy_regex: translate.legacy_regex,
            endpoint_quiet: pipeline.endpoint_quiet,
            config_quiet: pipeline.config_quiet,
            config_max: pipeline.config_max,
            persist: None,
            persist_after: pipeline.persist_after,
            registry: None,
            consul: None,
            static_file: None,
            #[cfg(feature = "providers")]
            providers: ProvidersSection::default(),
        }
    }
}

impl Config {
    /// Reads a configuration, which may be YAML or JSON. Paths in it are relative to `folder`.
    ///
    /// # Errors
    ///
    /// Returns all problems, each with its place.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, Problems> {
        let document = yaml::parse(text)?;
        let mut problems = Problems::new();
        let config = ObjectReader::read(&document, "", &mut problems, |file| {
            read::config(file, folder)
        });
        match config {
            Some(config) if !problems.has_errors() => Ok(config),
            _ => Err(problems),
        }
    }

    /// Returns the options of the pipeline.
    #[must_use]
    pub fn pipeline(&self) -> PipelineOptions {
        PipelineOptions {
            translate: TranslateOptions {
                domain_suffix: Arc::clone(&self.domain_suffix),
                domain_ports: self.domain_ports.clone(),
                registry_timeout: self.registry_timeout,
                health_check: self.health_check.clone(),
                legacy_regex: self.legacy_regex,
                route_config: Arc::clone(&self.route_config),
            },
            assemble: ResourceOptions::default()
                .with_xds_cluster(Arc::clone(&self.xds_cluster))
                .with_route_config(Arc::clone(&self.route_config))
                .with_precedence([REGISTRY, CONSUL, STATIC]),
            endpoint_quiet: self.endpoint_quiet,
            config_quiet: self.config_quiet,
            config_max: self.config_max,
            persist: self.persist.clone(),
            persist_after: self.persist_after,
        }
    }

    /// Returns the options of the server.
    #[must_use]
    pub fn server(&self) -> ServerOptions {
        let mut options = ServerOptions::default();
        self.limits.apply(&mut options);
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let files = ServerTls::new(&tls.certificate_file, &tls.key_file);
            return options.with_tls(match &tls.client_ca_file {
                Some(ca) => files.with_client_ca(ca),
                None => files,
            });
        }
        options
    }

    /// Returns the options of the Consul source.
    #[must_use]
    pub fn consul_source(&self) -> Option<ConsulSourceOptions> {
        let consul = self.consul.as_ref()?;
        let unset = ConsulSourceOptions::default();
        Some(ConsulSourceOptions {
            watch: consul.watch.clone(),
            defaults_key: consul.defaults_key.clone().or(unset.defaults_key),
            include_warning: consul.services.include_warning,
            wan_addresses: consul.services.wan_addresses,
            patience: consul.patience.max(unset.patience),
        })
    }
}
