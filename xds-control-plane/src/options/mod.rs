//! The configuration of a control plane, as a file has it.

mod limits;
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
use crate::assemble::AssembleOptions;
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
    /// Where xDS is served. `127.0.0.1:1701`.
    pub listen: SocketAddr,
    /// With what TLS xDS is served. `None`: without.
    pub tls: Option<TlsSection>,
    /// Where the admin API is served. `127.0.0.1:1702`.
    pub admin: SocketAddr,
    /// Host names that requests to the admin API may name, beside IP addresses and `localhost`.
    pub admin_hosts: Vec<String>,
    /// What clients may ask of the xDS server.
    pub limits: LimitsSection,
    /// What the control plane's cluster is called in the bootstrap of the Envoys. `xds`.
    pub xds_cluster: Arc<str>,
    /// What the route configuration is called. `main`.
    pub route_config: Arc<str>,
    /// What the domains of the registry's services end with.
    pub domain_suffix: Arc<str>,
    /// The ports that clients may write after a domain.
    pub domain_ports: Vec<u16>,
    /// How long requests to services of the registry may take.
    pub registry_timeout: Duration,
    /// How Envoy checks whether an endpoint lives.
    pub health_check: HealthCheckKind,
    /// Whether regular expressions are written as old Envoys want them.
    pub legacy_regex: bool,
    /// How long news of endpoints are gathered.
    pub endpoint_quiet: Duration,
    /// How long the sources have to be quiet before anything else is served.
    pub config_quiet: Duration,
    /// How long that may take at most.
    pub config_max: Duration,
    /// Where what was served last is kept.
    pub persist: Option<PathBuf>,
    /// How long sources may take to be read before that is served.
    pub persist_after: Duration,
    /// The registry.
    pub registry: Option<RegistrySection>,
    /// The Consul.
    pub consul: Option<DiscoveryOptions>,
    /// The static file.
    pub static_file: Option<PathBuf>,
    /// Sources that gateways of the family have.
    #[cfg(feature = "providers")]
    pub providers: ProvidersSection,
}

/// TLS of the xDS server, as PEM files that are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSection {
    /// The server's certificate, and those that it is signed by.
    pub certificate_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
    /// The certificates that clients are trusted by, who then have to show one.
    pub client_ca_file: Option<PathBuf>,
}

/// Where the registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrySection {
    /// In a file.
    File(PathBuf),
    /// Behind a URL.
    Http {
        /// The URL.
        url: url::Url,
        /// With requests that wait this long for news; `None`: it is polled.
        wait: Option<Duration>,
        /// How long after the last answer it is polled.
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
            xds_cluster: AssembleOptions::default().xds_cluster,
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
    /// All that is wrong with it, each with where it is.
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

    /// How a pipeline works by it.
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
            assemble: AssembleOptions::default()
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

    /// How the server works by it.
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

    /// How Consul is followed by it.
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
