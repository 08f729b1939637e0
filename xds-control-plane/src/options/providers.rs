//! Sources that gateways of this project have, in the same sections: a Service Fabric cluster, a Serf
//! cluster, and files with routes and clusters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use discovery_core::{ConfigProvider, ProviderState};
use discovery_servicefabric::options::ServerCheck;
use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems};
use tokio::sync::watch;

use super::policies;
use crate::bridge::{BridgeOptions, provide_below};
use crate::sources::{Provided, period};

/// The gateways' section for Service Fabric.
const SERVICE_FABRIC: &str = "ServiceFabricDiscovery";

/// The gateways' section for Serf.
const SERF: &str = "SerfDiscovery";

/// The gateways' section for files.
const FILES: &str = "ReverseProxyFiles";

/// Sources that gateways of this project have too.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ProvidersSection {
    /// A Service Fabric cluster.
    pub service_fabric: Option<discovery_servicefabric::options::Section>,
    /// A Serf cluster.
    pub serf: Option<discovery_serf::options::Section>,
    /// Files with a section `ReverseProxy`, each on top of those before it.
    pub files: Vec<PathBuf>,
    /// The options for converting their configuration to Envoy's.
    pub bridge: BridgeOptions,
}

/// The reason why a source cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("{section}: {source}")]
pub struct ProviderError {
    section: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl ProviderError {
    fn of(
        section: &'static str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            section,
            source: error.into(),
        }
    }
}

impl ProvidersSection {
    pub(super) fn read(file: &mut ObjectReader<'_, '_>, folder: &Path) -> Self {
        let service_fabric = file.object(SERVICE_FABRIC, |section| {
            let mut read = discovery_servicefabric::options::Section::read(section);
            resolve(service_fabric_files(&mut read), folder);
            read
        });
        let serf = file.object(SERF, |section| {
            let mut read = discovery_serf::options::Section::read(section);
            let options = &mut read.options;
            let files = [&mut options.auth_key_file, &mut options.persist];
            resolve(files.into_iter().flatten(), folder);
            read
        });
        let files = file.list(FILES, path).unwrap_or_default();
        Self {
            service_fabric,
            serf,
            files: files.into_iter().map(|path| folder.join(path)).collect(),
            bridge: file.object("bridge", bridge).unwrap_or_default(),
        }
    }

    /// Returns true if there is no source.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.service_fabric.is_none() && self.serf.is_none() && self.files.is_empty()
    }

    /// Starts to follow the sources. Returns them by name, for
    /// [`Sources::with_provided`](crate::sources::Sources::with_provided).
    ///
    /// # Errors
    ///
    /// Returns an error if a configured certificate, key or file cannot be used.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the sources that were started by then stop.
    pub async fn start(&self) -> Result<Vec<(Arc<str>, Provided)>, ProviderError> {
        // The policies of the files apply to all routes, as they do in a gateway.
        let files = match &self.files[..] {
            [] => None,
            files => Some(
                (policies::file_options().open(files).await)
                    .map_err(|error| ProviderError::of(FILES, error))?,
            ),
        };
        let policies = files.as_ref().map(ConfigProvider::subscribe);
        let names = policies.as_ref().map(policies::names).unwrap_or_default();
        let mut started = Vec::new();
        if let Some(section) = &self.service_fabric {
            let discovery = section
                .connect()
                .map_err(|error| ProviderError::of(SERVICE_FABRIC, error))?;
            let runner = discovery.discoverer().runner();
            let runner = runner.compile_options(names.clone()).start();
            started.push(self.provided(runner, policies.clone()));
        }
        if let Some(section) = &self.serf {
            let discoverer = section
                .connect()
                .map_err(|error| ProviderError::of(SERF, error))?;
            let runner = discoverer.runner().compile_options(names).start();
            started.push(self.provided(runner, policies));
        }
        if let Some(files) = files {
            started.push(self.provided(files, None));
        }
        Ok(started)
    }

    /// Reads the files as gateways do, and converts them. Returns everything that is wrong, or that Envoy does not do.
    /// An empty list if there is no file. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is not a configuration.
    pub fn check_files(&self) -> Result<Problems, ProviderError> {
        if self.files.is_empty() {
            return Ok(Problems::new());
        }
        policies::check(&self.files, &self.bridge).map_err(|error| ProviderError::of(FILES, error))
    }

    fn provided(
        &self,
        provider: impl ConfigProvider + 'static,
        policies: Option<watch::Receiver<Arc<ProviderState>>>,
    ) -> (Arc<str>, Provided) {
        let name = Arc::from(provider.name());
        let provided = provide_below(provider, self.bridge.clone(), policies);
        (name, provided)
    }
}

/// The files that the section of a Service Fabric cluster names.
fn service_fabric_files(
    section: &mut discovery_servicefabric::options::Section,
) -> impl Iterator<Item = &mut PathBuf> {
    let connection = &mut section.connection;
    let authorities = match &mut connection.server {
        ServerCheck::Authorities(file) => Some(file),
        ServerCheck::Names { authorities, .. } => authorities.as_mut(),
        _ => None,
    };
    let files = [
        connection.client_certificate_file.as_mut(),
        connection.client_key_file.as_mut(),
        connection.token_file.as_mut(),
        section.options.persist.as_mut(),
        authorities,
    ];
    files.into_iter().flatten()
}

fn resolve<'f>(files: impl Iterator<Item = &'f mut PathBuf>, folder: &Path) {
    for file in files {
        *file = folder.join(&*file);
    }
}

fn path(node: &Node, pointer: &str, problems: &mut Problems) -> Option<PathBuf> {
    if let Node::Text(path) = node
        && !path.is_empty()
    {
        return Some(path.into());
    }
    problems.push(Problem::error(
        pointer,
        "invalid_path",
        "is the path of a file",
    ));
    None
}

fn bridge(section: &mut ObjectReader<'_, '_>) -> BridgeOptions {
    let mut options = BridgeOptions::default();
    if let Some(ports) = section.list("ports", super::read::port) {
        options.ports = ports;
    }
    if let Some(https) = section.boolean("https") {
        options.https = https;
    }
    if let Some(path) = section.text("trustedCa").filter(|path| !path.is_empty()) {
        options.trusted_ca = path.into();
    }
    if let Some(timeout) = period(section, "connectTimeout") {
        options.connect_timeout = timeout;
    }
    if let Some(carry) = section.boolean("carrySource") {
        options.carry_source = carry;
    }
    options
}
