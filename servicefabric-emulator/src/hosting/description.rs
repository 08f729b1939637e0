//! The inputs of a node: packages and placements.

use std::sync::Arc;

use super::key::{PackageKey, ReplicaKey};

/// The parts of a service manifest that hosting uses.
///
/// It holds for all instances of the package, shared and exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageDescription {
    /// The application's name.
    pub application: Arc<str>,
    /// The service manifest's name.
    pub manifest: Arc<str>,
    /// The service manifest's version. It is part of the names of health properties.
    pub version: Arc<str>,
    /// The code packages, in the order in which they are started.
    pub code_packages: Vec<CodePackageDescription>,
}

impl PackageDescription {
    /// A package of one code package `Code` that hosts the types.
    pub fn new(application: &str, manifest: &str, version: &str, types: &[&str]) -> Self {
        Self {
            application: application.into(),
            manifest: manifest.into(),
            version: version.into(),
            code_packages: vec![CodePackageDescription::hosting("Code", version, types)],
        }
    }

    /// Adds a code package.
    #[must_use]
    pub fn with(mut self, code_package: CodePackageDescription) -> Self {
        self.code_packages.push(code_package);
        self
    }

    /// The service types that its code packages host.
    pub fn service_types(&self) -> impl Iterator<Item = &Arc<str>> {
        self.code_packages
            .iter()
            .flat_map(CodePackageDescription::types)
    }

    /// The code package that hosts a service type.
    pub fn host_of(&self, service_type: &str) -> Option<&CodePackageDescription> {
        self.code_packages
            .iter()
            .find(|code| code.types().iter().any(|name| **name == *service_type))
    }
}

/// The kind of host that runs a code package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub enum HostType {
    /// A separate process.
    #[default]
    ExeHost,
    /// A container.
    ContainerHost,
}

/// The role of a code package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The process registers these service types and hosts their replicas.
    TypeHost(Vec<Arc<str>>),
    /// The process registers nothing. Its crashes never affect a service type.
    Helper,
}

/// A code package of a service manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePackageDescription {
    /// The name, unique in the package.
    pub name: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The role.
    pub role: Role,
    /// The kind of host.
    pub host_type: HostType,
    /// The program of the setup entry point, which runs to its end before the main one starts. Default: none.
    pub setup: Option<Arc<str>>,
    /// The program of the main entry point.
    pub main: Arc<str>,
    /// True if an exit with code 0 is the regular end, without a restart. Default: false.
    pub run_to_completion: bool,
    /// True for a program that does not know Service Fabric: hosting registers the types on its behalf, and
    /// moves its replicas elsewhere after repeated failures
    /// (`DeployedServiceFailoverContinuousFailureThreshold`). Default: false.
    pub guest: bool,
}

impl CodePackageDescription {
    /// A code package that hosts service types.
    pub fn hosting(name: &str, version: &str, types: &[&str]) -> Self {
        Self {
            role: Role::TypeHost(types.iter().map(|&name| name.into()).collect()),
            ..Self::helper(name, version)
        }
    }

    /// A code package that hosts no service type.
    pub fn helper(name: &str, version: &str) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            role: Role::Helper,
            host_type: HostType::ExeHost,
            setup: None,
            main: format!("{name}.exe").into(),
            run_to_completion: false,
            guest: false,
        }
    }

    /// The types that it hosts.
    pub fn types(&self) -> &[Arc<str>] {
        match &self.role {
            Role::TypeHost(types) => types,
            Role::Helper => &[],
        }
    }
}

/// The kind of a replica: new or reopened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaKind {
    /// The replica is being created. A disabled service type rejects it for good, so that it can be placed on
    /// another node.
    #[default]
    New,
    /// The replica is being reopened, and its state is on this node. It waits until the service type is
    /// enabled again.
    Existing,
}

/// A request to run a replica on a node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Placement {
    /// The replica.
    pub replica: ReplicaKey,
    /// The kind: new or reopened.
    pub kind: ReplicaKind,
    /// The package instance that will host it.
    pub package: PackageKey,
    /// The service type, which a code package of the package hosts.
    pub service_type: Arc<str>,
    /// True if the state is on the node's disk, so that the replica returns as [`ReplicaKind::Existing`]
    /// after a restart of the node. Otherwise the restart drops it.
    pub persisted: bool,
}

impl Placement {
    /// A new replica without persisted state.
    pub fn new(replica: ReplicaKey, package: PackageKey, service_type: &str) -> Self {
        Self {
            replica,
            kind: ReplicaKind::New,
            package,
            service_type: service_type.into(),
            persisted: false,
        }
    }

    /// Sets persisted state.
    #[must_use]
    pub fn persisted(mut self) -> Self {
        self.persisted = true;
        self
    }

    /// Sets the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ReplicaKind) -> Self {
        self.kind = kind;
        self
    }
}
