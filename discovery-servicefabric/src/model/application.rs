//! Applications and their types.

use std::fmt;

use serde::Deserialize;

use super::health::HealthState;
use super::wire;

/// An application: an instance of a type in one version.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Application {
    /// The application's id in paths, already encoded. Empty from gateways that do not send it; see
    /// [`crate::id_of`].
    #[serde(deserialize_with = "wire::nullable")]
    pub id: String,
    /// The application's name: `fabric:/Shop`.
    #[serde(deserialize_with = "wire::nullable")]
    pub name: String,
    /// Name of its type.
    #[serde(deserialize_with = "wire::nullable")]
    pub type_name: String,
    /// Version of its type.
    #[serde(deserialize_with = "wire::nullable")]
    pub type_version: String,
    /// `Ready`, `Upgrading`, …
    #[serde(deserialize_with = "wire::nullable")]
    pub status: String,
    /// Parameters that differ from the type's defaults.
    #[serde(deserialize_with = "wire::list")]
    pub parameters: Vec<Parameter>,
    /// Health of all that belongs to it.
    pub health_state: HealthState,
}

/// A type of applications in one version.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ApplicationType {
    /// The type's name.
    #[serde(deserialize_with = "wire::nullable")]
    pub name: String,
    /// The type's version.
    #[serde(deserialize_with = "wire::nullable")]
    pub version: String,
    /// `Available`, `Provisioning`, `Failed`, …
    #[serde(deserialize_with = "wire::nullable")]
    pub status: String,
    /// Parameters with their defaults.
    #[serde(deserialize_with = "wire::list")]
    pub default_parameter_list: Vec<Parameter>,
}

/// A parameter of an application. Names are compared ignoring case. Values are often secrets: `Debug` leaves them out.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Parameter {
    /// The parameter's name.
    #[serde(deserialize_with = "wire::nullable")]
    pub key: String,
    /// The parameter's value.
    #[serde(deserialize_with = "wire::nullable")]
    pub value: String,
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameter")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
