//! Keys of packages, processes, service types and replicas on a node.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// The activation mode: whether replicas of several services and partitions share the processes of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub enum ActivationMode {
    /// One instance of the package on a node serves all partitions of all its services.
    #[default]
    SharedProcess,
    /// Each partition of a service has its own instance of the package, identified by its activation id.
    ExclusiveProcess,
}

/// A service package instance on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PackageKey {
    /// The application's name, for example `fabric:/App`.
    pub application: Arc<str>,
    /// The name of the service manifest.
    pub manifest: Arc<str>,
    /// Empty for the shared instance, any other text for an exclusive one.
    pub activation_id: Arc<str>,
}

impl PackageKey {
    /// Returns the key of the instance that all services of the package share.
    pub fn shared(application: &str, manifest: &str) -> Self {
        Self::exclusive(application, manifest, "")
    }

    /// Returns the key of the instance with this activation id. An empty id is that of the shared one.
    pub fn exclusive(application: &str, manifest: &str, activation_id: &str) -> Self {
        Self {
            application: application.into(),
            manifest: manifest.into(),
            activation_id: activation_id.into(),
        }
    }

    /// Returns the activation mode, which decides the grace interval of the instance.
    pub fn mode(&self) -> ActivationMode {
        if self.activation_id.is_empty() {
            ActivationMode::SharedProcess
        } else {
            ActivationMode::ExclusiveProcess
        }
    }

    /// Returns the key of a code package's process.
    pub fn process(&self, code_package: &str) -> ProcessKey {
        ProcessKey {
            package: self.clone(),
            code_package: code_package.into(),
        }
    }

    /// Returns the key of a service type.
    pub fn service_type(&self, name: &str) -> TypeKey {
        TypeKey {
            package: self.clone(),
            service_type: name.into(),
        }
    }
}

impl fmt::Display for PackageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.application, self.manifest)?;
        if !self.activation_id.is_empty() {
            write!(f, "[{}]", self.activation_id)?;
        }
        Ok(())
    }
}

/// A code package of a package instance, which has at most one main process at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProcessKey {
    /// The instance.
    #[serde(flatten)]
    pub package: PackageKey,
    /// The code package's name.
    pub code_package: Arc<str>,
}

impl fmt::Display for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.package, self.code_package)
    }
}

/// A service type of a package instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TypeKey {
    /// The instance.
    #[serde(flatten)]
    pub package: PackageKey,
    /// The service type's name.
    pub service_type: Arc<str>,
}

impl fmt::Display for TypeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.package, self.service_type)
    }
}

/// A replica of a stateful service or an instance of a stateless one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ReplicaKey {
    /// The id of its partition.
    pub partition: Arc<str>,
    /// The replica id or the instance id.
    pub id: i64,
}

impl ReplicaKey {
    /// The replica `id` of `partition`.
    pub fn new(partition: &str, id: i64) -> Self {
        Self {
            partition: partition.into(),
            id,
        }
    }
}

impl fmt::Display for ReplicaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.partition, self.id)
    }
}
