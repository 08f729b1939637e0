//! The sources that a configuration file describes.

use std::path::Path;

use discovery_consul::client::ConsulClient;
use program_kit::{Failure, read};
use xds_control_plane::options::{Config, RegistrySection};
use xds_control_plane::sources::{
    FileRegistry, HttpRegistry, HttpRegistryOptions, RegistryMode, Sources,
};

/// Reads a configuration.
pub(super) fn config(path: &Path) -> Result<Config, Failure> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    Config::parse(&text, folder)
        .map_err(|problems| Failure::new(format!("{} cannot be used:\n{problems}", path.display())))
}

/// Returns the sources of a configuration. The sources that gateways have too begin to poll.
pub(super) async fn sources(config: &Config) -> Result<Sources, Failure> {
    let mut sources = Sources::new();
    match &config.registry {
        Some(RegistrySection::File(path)) => {
            sources = sources.with_registry(FileRegistry::new(path))
        }
        Some(RegistrySection::Http {
            url,
            wait,
            poll,
            token_file,
        }) => {
            let mut options = HttpRegistryOptions::new(url.clone());
            options.mode = match wait {
                Some(wait) => RegistryMode::Blocking(*wait),
                None => RegistryMode::Poll(*poll),
            };
            options.token_file.clone_from(token_file);
            let registry =
                HttpRegistry::new(options).map_err(|error| Failure::from_error(&error))?;
            sources = sources.with_registry(registry);
        }
        None => {}
    }
    if let (Some(consul), Some(options)) = (&config.consul, config.consul_source()) {
        let client = ConsulClient::new(consul.consul.clone())
            .map_err(|error| Failure::from_error(&error))?;
        sources = sources.with_consul(client, options);
    }
    if let Some(path) = &config.static_file {
        sources = sources.with_static_file(path);
    }
    let provided = config.providers.start().await;
    for (name, provided) in provided.map_err(|error| Failure::from_error(&error))? {
        sources = sources.with_provided(name, provided);
    }
    Ok(sources)
}
