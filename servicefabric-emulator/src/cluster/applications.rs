//! Applications.

use indexmap::IndexMap;

use super::entity::{Application, ApplicationStatus, ApplicationType, ServiceManifest};
use super::error::{ErrorCode, FabricError};
use super::name::FabricName;
use super::request::ApplicationCreation;
use super::state::Cluster;
use crate::health::EntityKey;
use crate::hosting::{CodePackageDescription, PackageDescription};

/// The maximum number of applications of a cluster.
const MAX_APPLICATIONS: usize = 100_000;
/// The maximum number of parameters of an application.
const MAX_PARAMETERS: usize = 1000;
const MAX_PARAMETER: usize = 64 * 1024;

impl Cluster {
    /// Creates an application with the default services of its type, all or nothing. Further services are
    /// created one by one.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`, `FABRIC_E_APPLICATION_ALREADY_EXISTS`; `E_INVALIDARG` for a
    /// parameter that the type does not declare.
    pub fn create_application(&mut self, creation: ApplicationCreation) -> Result<(), FabricError> {
        let declared = self.application_type(&creation.type_name, &creation.type_version)?;
        check_parameters(declared, &creation.parameters)?;
        let name = creation.name;
        if self.applications.contains_key(&name) {
            return Err(FabricError::new(
                ErrorCode::ApplicationAlreadyExists,
                format!("there is an application '{name}' already"),
            ));
        }
        if self.applications.len() >= MAX_APPLICATIONS {
            return Err(FabricError::new(
                ErrorCode::Fail,
                format!("the cluster has {MAX_APPLICATIONS} applications already"),
            ));
        }
        let parameters = overridden(&declared.default_parameters, &creation.parameters);
        // An invalid default service is found before the first change.
        let services = declared.default_services.iter();
        let services = services.map(|service| service.creation(&name, &parameters));
        let services = services.collect::<Result<Vec<_>, _>>()?;
        let descriptions = descriptions(&name, declared);
        // Every node may host a service of the application later.
        for entry in self.nodes.values_mut() {
            for description in &descriptions {
                entry.host.declare(description.clone());
            }
            entry
                .versions
                .insert(name.clone(), creation.type_version.clone());
        }
        self.names.insert_system(&name, self.now);
        let key = EntityKey::Application(name.clone());
        self.health.insert(key, Some(EntityKey::Cluster));
        self.say_application_was_created(&name);
        let application = Application {
            name: name.clone(),
            type_name: creation.type_name,
            type_version: creation.type_version,
            parameters: creation.parameters,
            status: ApplicationStatus::Ready,
            created_at: self.now,
            services: std::collections::BTreeSet::new(),
            upgrade: None,
        };
        self.applications.insert(name.clone(), application);
        for service in services {
            if let Err(error) = self.create_service(service) {
                // The application was just created, so it exists.
                let _ = self.delete_application(&name);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Deletes an application with all its services.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`.
    pub fn delete_application(&mut self, name: &FabricName) -> Result<(), FabricError> {
        let services = self.existing_application(name)?.services.clone();
        for service in &services {
            self.remove_service(service);
        }
        self.upgrades.remove(name);
        self.applications.remove(name);
        for entry in self.nodes.values_mut() {
            entry.host.forget(name.as_str());
            entry.versions.remove(name);
            entry
                .scripted
                .retain(|package| *package.application != *name.as_str());
        }
        self.unheard = true;
        self.blocked
            .retain(|key, _| *key.package.application != *name.as_str());
        self.health.remove(&EntityKey::Application(name.clone()));
        self.names.remove_system(name);
        self.settle();
        Ok(())
    }

    /// Returns the parameters of an application: its own over the defaults of its type, with the names of the
    /// type.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`.
    pub fn effective_parameters(
        &self,
        name: &FabricName,
    ) -> Result<IndexMap<String, String>, FabricError> {
        let application = self.existing_application(name)?;
        let key = (
            application.type_name.clone(),
            application.type_version.clone(),
        );
        let declared = self.types.get(&key);
        let defaults = declared.map(|found| found.default_parameters.clone());
        Ok(overridden(
            &defaults.unwrap_or_default(),
            &application.parameters,
        ))
    }

    /// Returns the version of an application's type that was declared to a node.
    pub(super) fn version_on(&self, node: &str, application: &FabricName) -> Option<String> {
        self.nodes.get(node)?.versions.get(application).cloned()
    }
}

/// Returns the parameters of an application over the defaults of its type, with the names of the type.
fn overridden(
    defaults: &IndexMap<String, String>,
    own: &IndexMap<String, String>,
) -> IndexMap<String, String> {
    let mut parameters = defaults.clone();
    for (name, value) in own {
        let known = parameters
            .keys()
            .find(|known| known.eq_ignore_ascii_case(name))
            .cloned();
        parameters.insert(known.unwrap_or_else(|| name.clone()), value.clone());
    }
    parameters
}

/// Checks that an application type declares all of these parameters and that they are within the limits.
pub(super) fn check_parameters(
    declared: &ApplicationType,
    parameters: &IndexMap<String, String>,
) -> Result<(), FabricError> {
    if parameters.len() > MAX_PARAMETERS {
        return Err(FabricError::invalid_argument(
            "an application has at most 1000 parameters",
        ));
    }
    for (name, value) in parameters {
        let mut known = declared.default_parameters.keys();
        if !known.any(|known| known.eq_ignore_ascii_case(name)) {
            let shown: String = name.chars().take(120).collect();
            return Err(FabricError::invalid_argument(format!(
                "application type '{}' has no parameter '{shown}' in version '{}'",
                declared.name, declared.version
            )));
        }
        if value.len() > MAX_PARAMETER {
            return Err(FabricError::new(
                ErrorCode::ValueTooLarge,
                format!("the value of parameter '{name}' has more than {MAX_PARAMETER} bytes"),
            ));
        }
    }
    Ok(())
}

/// Returns the packages of an application as nodes see them.
pub(super) fn descriptions(
    name: &FabricName,
    declared: &ApplicationType,
) -> Vec<PackageDescription> {
    let manifests = declared.service_manifests.iter();
    manifests
        .map(|manifest| description(name, manifest))
        .collect()
}

fn description(name: &FabricName, manifest: &ServiceManifest) -> PackageDescription {
    let mut description =
        PackageDescription::new(name.as_str(), &manifest.name, &manifest.version, &[]);
    description.code_packages = manifest
        .code_packages
        .iter()
        .map(|code| {
            let types: Vec<&str> = code.hosts.iter().map(String::as_str).collect();
            let mut described = if types.is_empty() {
                CodePackageDescription::helper(&code.name, &code.version)
            } else {
                CodePackageDescription::hosting(&code.name, &code.version, &types)
            };
            described.setup = code.setup.as_deref().map(Into::into);
            described.main = code.program.as_str().into();
            described
        })
        .collect();
    description
}
