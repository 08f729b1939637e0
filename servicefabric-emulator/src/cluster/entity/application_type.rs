//! Application types and the parts of their packages.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{ServiceKind, wire_words};
use crate::cluster::package::DefaultService;

/// An application type in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationType {
    /// The name.
    pub name: String,
    /// The version: a text that is compared for equality only.
    pub version: String,
    /// The parameters of applications of this type, with their defaults.
    pub default_parameters: IndexMap<String, String>,
    /// The service packages.
    pub service_manifests: Vec<ServiceManifest>,
    /// The default services of every application of this type.
    pub default_services: Vec<DefaultService>,
    /// The status.
    pub status: ApplicationTypeStatus,
    /// The manifest as uploaded. `None`: it is generated from the type.
    pub manifest: Option<Arc<str>>,
}

impl ApplicationType {
    /// All service types with the manifest that declares them, in the order of the manifests.
    pub fn service_types(&self) -> impl Iterator<Item = (&ServiceManifest, &ServiceType)> {
        let manifests = self.service_manifests.iter();
        manifests.flat_map(|manifest| manifest.service_types.iter().map(move |t| (manifest, t)))
    }

    /// A service type by its name, with the manifest that declares it.
    pub fn service_type(&self, name: &str) -> Option<(&ServiceManifest, &ServiceType)> {
        self.service_types().find(|(_, found)| found.name == name)
    }

    /// A service manifest by its name.
    pub fn service_manifest(&self, name: &str) -> Option<&ServiceManifest> {
        self.service_manifests
            .iter()
            .find(|found| found.name == name)
    }
}

/// The status of an application type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationTypeStatus {
    /// The type is being copied into the cluster.
    Provisioning,
    /// Applications of this type can be created.
    Available,
    /// The type is being removed.
    Unprovisioning,
}

wire_words!(ApplicationTypeStatus {
    Provisioning = "Provisioning",
    Available = "Available",
    Unprovisioning = "Unprovisioning",
});

/// A service package: the unit that a node downloads, activates and deactivates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceManifest {
    /// The name, e.g. `WebPkg`.
    pub name: String,
    /// The version.
    pub version: String,
    /// The service types.
    pub service_types: Vec<ServiceType>,
    /// The code packages.
    pub code_packages: Vec<CodePackage>,
    /// The endpoints.
    pub endpoints: Vec<EndpointResource>,
    /// The manifest as uploaded. `None`: it is generated from the package.
    pub manifest: Option<Arc<str>>,
}

impl ServiceManifest {
    /// Returns the code package whose process registers `service_type`.
    pub fn host_of(&self, service_type: &str) -> Option<&CodePackage> {
        let mut packages = self.code_packages.iter();
        packages.find(|package| package.hosts.iter().any(|hosted| hosted == service_type))
    }
}

/// A type of services.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceType {
    /// The name.
    pub name: String,
    /// The kind of its services: stateless or stateful.
    pub kind: ServiceKind,
    /// True if the state outlives the process. Only for stateful types.
    pub has_persisted_state: bool,
    /// The placement constraints of its services. Empty: any node.
    pub placement_constraints: String,
    /// Extensions of the manifest, by name; the value is XML as text.
    pub extensions: Vec<Extension>,
    /// The listeners that its replicas open: names of [`EndpointResource`]s.
    pub listeners: Vec<String>,
}

/// An extension of a service type: XML that the cluster stores without interpreting it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extension {
    /// The name.
    pub name: String,
    /// The content of the `Extension` element.
    pub xml: String,
}

/// A program of a service package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodePackage {
    /// The name, e.g. `Code`.
    pub name: String,
    /// The version.
    pub version: String,
    /// The service types that its process registers. Empty for a helper program.
    pub hosts: Vec<String>,
    /// The setup program, which runs once before the main one.
    pub setup: Option<String>,
    /// The program.
    pub program: String,
}

/// An endpoint of a service package.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointResource {
    /// The name, which is also the name of the listener.
    pub name: String,
    /// Scheme of the address, e.g. `http`.
    pub protocol: String,
    /// The fixed port. `None`: one of the node's ports.
    pub port: Option<u16>,
    /// The part of the address after the port: empty, or a path that begins with `/`.
    pub path: String,
}
