//! Provisioned application types.

use super::entity::{ApplicationType, ApplicationTypeStatus};
use super::error::{ErrorCode, FabricError};
use super::state::Cluster;

/// The maximum number of versions of types.
const MAX_TYPES: usize = 10_000;

impl Cluster {
    /// Provisions an application type from the image store: an uploaded package, or a type that the topology
    /// holds back. The path of the latter is `Name/Version`, or `Name` if it has a single version.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` if nothing is at the path, `FABRIC_E_APPLICATION_TYPE_ALREADY_EXISTS`.
    pub fn provision(&mut self, build_path: &str) -> Result<(), FabricError> {
        if let Some(uploaded) = self.uploaded(build_path) {
            return self.provision_type(uploaded?);
        }
        let mut at_path = self.image_store.values().filter(|stored| {
            let version = build_path.strip_prefix(stored.name.as_str());
            version.is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('/') == Some(&stored.version)
            })
        });
        match (at_path.next(), at_path.next()) {
            (Some(only), None) => {
                let found = only.clone();
                self.provision_type(found)
            }
            (Some(_), Some(_)) => Err(FabricError::invalid_argument(format!(
                "the image store has several versions at '{build_path}': write Name/Version"
            ))),
            (None, _) => Err(FabricError::invalid_argument(format!(
                "the image store has no application package at '{build_path}': upload a directory with ApplicationManifest.xml"
            ))),
        }
    }

    /// Provisions this application type. It stays in the image store when it is unprovisioned.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_ALREADY_EXISTS` in this version; `E_INVALIDARG` for an empty name or version.
    pub fn provision_type(
        &mut self,
        mut application_type: ApplicationType,
    ) -> Result<(), FabricError> {
        let key = (
            application_type.name.clone(),
            application_type.version.clone(),
        );
        let odd = |text: &str| text.is_empty() || text.len() > 256 || text.contains('+');
        if odd(&key.0) || odd(&key.1) {
            return Err(FabricError::invalid_argument(
                "name and version of an application type have 1 to 256 bytes without '+'",
            ));
        }
        if self.types.contains_key(&key) {
            return Err(FabricError::new(
                ErrorCode::ApplicationTypeAlreadyExists,
                format!(
                    "application type '{}' is provisioned in version '{}'",
                    key.0, key.1
                ),
            ));
        }
        if self.types.len() >= MAX_TYPES {
            return Err(FabricError::new(
                ErrorCode::Fail,
                format!("{MAX_TYPES} application types are provisioned already"),
            ));
        }
        application_type.status = ApplicationTypeStatus::Available;
        self.image_store
            .insert(key.clone(), application_type.clone());
        self.types.insert(key, application_type);
        Ok(())
    }

    /// Removes an application type in one version.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`, `FABRIC_E_APPLICATION_TYPE_IN_USE`.
    pub fn unprovision(&mut self, name: &str, version: &str) -> Result<(), FabricError> {
        self.application_type(name, version)?;
        let user = self.applications.values().find(|application| {
            let goes_there = self.upgrades.get(&application.name);
            application.type_name == name
                && (application.type_version == version
                    || goes_there.is_some_and(|run| run.uses_version(version)))
        });
        if let Some(user) = user {
            return Err(FabricError::new(
                ErrorCode::ApplicationTypeInUse,
                format!(
                    "application '{}' uses '{name}' in version '{version}'",
                    user.name
                ),
            ));
        }
        self.types.remove(&(name.to_owned(), version.to_owned()));
        Ok(())
    }
}
