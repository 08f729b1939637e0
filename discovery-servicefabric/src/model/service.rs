//! Services and their types.

use serde::Deserialize;

use super::health::HealthState;
use super::wire::{self, words};

words! {
    /// The kind of a service: stateless or stateful.
    ServiceKind, Invalid {
        /// The gateway does not know.
        Invalid,
        /// A service without state, which has instances.
        Stateless,
        /// A service with state, which has replicas with roles.
        Stateful,
    }
}

words! {
    /// The status of a service.
    ServiceStatus, Unknown {
        /// Not known.
        Unknown,
        /// Working.
        Active,
        /// Being upgraded.
        Upgrading,
        /// Being deleted.
        Deleting,
        /// Being created.
        Creating,
        /// Failed to be created or deleted.
        Failed,
    }
}

/// A named service of an application.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Service {
    /// The service's id in paths, already encoded. Empty from gateways that do not send it; see
    /// [`crate::id_of`].
    #[serde(deserialize_with = "wire::nullable")]
    pub id: String,
    /// The service's name: `fabric:/Shop/Web`.
    #[serde(deserialize_with = "wire::nullable")]
    pub name: String,
    /// Name of its type.
    #[serde(deserialize_with = "wire::nullable")]
    pub type_name: String,
    /// Version of the service manifest.
    #[serde(deserialize_with = "wire::nullable")]
    pub manifest_version: String,
    /// The kind of the service: stateless or stateful.
    pub service_kind: ServiceKind,
    /// The status of the service.
    pub service_status: ServiceStatus,
    /// Health of all that belongs to it.
    pub health_state: HealthState,
}

/// A type of services, as an application type in one version declares it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ServiceType {
    /// The declaration.
    #[serde(deserialize_with = "wire::nullable")]
    pub service_type_description: ServiceTypeDescription,
    /// The manifest that declares it.
    #[serde(deserialize_with = "wire::nullable")]
    pub service_manifest_name: String,
    /// Version of that manifest.
    #[serde(deserialize_with = "wire::nullable")]
    pub service_manifest_version: String,
}

/// The declaration of a type of services.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Declaration")]
#[non_exhaustive]
pub struct ServiceTypeDescription {
    /// True if its services are stateful.
    pub is_stateful: bool,
    /// The type's name.
    pub service_type_name: String,
    /// The extensions that the manifest attaches to it for other programs. `None` if the gateway leaves
    /// them out, so that the manifest has to be read.
    pub extensions: Option<Vec<Extension>>,
}

/// The wire form of a service. All gateways write `IsStateful`, newer ones `Kind` as well.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Declaration {
    is_stateful: Option<bool>,
    kind: ServiceKind,
    #[serde(deserialize_with = "wire::nullable")]
    service_type_name: String,
    #[serde(deserialize_with = "wire::optional_list")]
    extensions: Option<Vec<Extension>>,
}

impl From<Declaration> for ServiceTypeDescription {
    fn from(wire: Declaration) -> Self {
        Self {
            is_stateful: wire
                .is_stateful
                .unwrap_or(wire.kind == ServiceKind::Stateful),
            service_type_name: wire.service_type_name,
            extensions: wire.extensions,
        }
    }
}

/// A text that a manifest attaches to a type for other programs to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Extension {
    /// The extension's name: `YARP-preview`.
    #[serde(deserialize_with = "wire::nullable")]
    pub key: String,
    /// The extension's content, an XML element as text.
    #[serde(deserialize_with = "wire::nullable")]
    pub value: String,
}
