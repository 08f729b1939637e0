//! Application packages: the manifests of real clusters.

mod application;
mod default_service;
mod service;
#[cfg(test)]
mod tests;
mod xml;

use std::fmt;

pub use self::default_service::DefaultService;
use super::entity::{ApplicationType, ApplicationTypeStatus};
use super::name::FabricName;

/// The file that makes a directory an application package.
pub const APPLICATION_MANIFEST: &str = "ApplicationManifest.xml";

/// The file that makes a directory of a package a service package.
pub const SERVICE_MANIFEST: &str = "ServiceManifest.xml";

/// The maximum size of a manifest, in bytes.
pub const MAX_MANIFEST: usize = 1 << 20;

/// The reason why a package cannot be provisioned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageError {
    /// The file, from the root of the package.
    pub file: String,
    /// The error, and how to correct it.
    pub message: String,
}

impl PackageError {
    pub(super) fn new(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            message: message.into(),
        }
    }
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

impl std::error::Error for PackageError {}

impl ApplicationType {
    /// Parses the type that a package declares. `read` returns a file by its path from the root of the
    /// package.
    ///
    /// The used parts of the manifests are parameters, imported service manifests and default services;
    /// service types with placement constraints and extensions, code packages, and endpoints. Policies,
    /// overrides of configuration and certificates are kept in the text of the manifest and have no effect.
    ///
    /// # Errors
    ///
    /// A manifest is missing, is not well-formed, or contradicts itself or another one.
    pub fn from_package(
        mut read: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, PackageError> {
        let missing = |file: &str| PackageError::new(file, "the package has no such file");
        let text = read(APPLICATION_MANIFEST).ok_or_else(|| missing(APPLICATION_MANIFEST))?;
        let read_manifest = application::read(&text)?;
        let mut service_manifests = Vec::new();
        for import in &read_manifest.imports {
            let file = format!("{}/{SERVICE_MANIFEST}", import.name);
            let text = read(&file).ok_or_else(|| missing(&file))?;
            service_manifests.push(service::read(&file, &text, import)?);
        }
        let mut application_type = Self {
            name: read_manifest.name,
            version: read_manifest.version,
            default_parameters: read_manifest.parameters,
            service_manifests,
            default_services: read_manifest.default_services,
            status: ApplicationTypeStatus::Available,
            manifest: None,
        };
        application_type.check_default_services()?;
        application_type.manifest = Some(text.into());
        Ok(application_type)
    }

    fn check_default_services(&self) -> Result<(), PackageError> {
        for service in &self.default_services {
            let error = |message| PackageError::new(APPLICATION_MANIFEST, message);
            let Some((_, declared)) = self.service_type(&service.type_name) else {
                return Err(error(format!(
                    "the default service `{}` has the type `{}`, which no service manifest declares",
                    service.name, service.type_name
                )));
            };
            if declared.kind != service.kind() {
                return Err(error(format!(
                    "the default service `{}` is {}, but its type `{}` is {}",
                    service.name,
                    service.kind(),
                    service.type_name,
                    declared.kind
                )));
            }
            // The type must be valid with the defaults of its parameters. Applications may have other values.
            let application =
                FabricName::parse("fabric:/Application").map_err(|e| error(e.message))?;
            service
                .creation(&application, &self.default_parameters)
                .map_err(|rejected| error(rejected.message))?;
        }
        Ok(())
    }
}
