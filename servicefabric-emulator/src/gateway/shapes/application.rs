use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::cluster::{
    Application, ApplicationType, FabricName, ServiceKind, ServiceManifest, ServiceType,
};
use crate::gateway::wire::{ApiVersion, id_of};

/// A parameter of an application, or any other pair of key and value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
pub(crate) struct Parameter {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Returns parameters as a list.
pub(crate) fn parameters(parameters: &IndexMap<String, String>) -> Vec<Parameter> {
    parameters
        .iter()
        .map(|(key, value)| Parameter {
            key: key.clone(),
            value: value.clone(),
        })
        .collect()
}

/// `ApplicationInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ApplicationInfo<'a> {
    id: String,
    name: &'a str,
    type_name: &'a str,
    type_version: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<Parameter>>,
    health_state: &'static str,
    application_definition_kind: &'static str,
}

impl<'a> ApplicationInfo<'a> {
    pub(crate) fn new(
        application: &'a Application,
        health_state: &'static str,
        with_parameters: bool,
        version: ApiVersion,
    ) -> Self {
        Self {
            id: id_of(&application.name, version),
            name: application.name.as_str(),
            type_name: &application.type_name,
            type_version: &application.type_version,
            status: application.status.as_str(),
            parameters: with_parameters.then(|| parameters(&application.parameters)),
            health_state,
            application_definition_kind: "ServiceFabricApplicationDescription",
        }
    }
}

/// `ApplicationTypeInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ApplicationTypeInfo<'a> {
    name: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_parameter_list: Option<Vec<Parameter>>,
    status: &'static str,
    status_details: &'static str,
    application_type_definition_kind: &'static str,
}

impl<'a> ApplicationTypeInfo<'a> {
    pub(crate) fn new(application_type: &'a ApplicationType, with_parameters: bool) -> Self {
        Self {
            name: &application_type.name,
            version: &application_type.version,
            default_parameter_list: with_parameters
                .then(|| parameters(&application_type.default_parameters)),
            status: application_type.status.as_str(),
            status_details: "",
            application_type_definition_kind: "ServiceFabricApplicationPackage",
        }
    }
}

/// `ServiceTypeInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ServiceTypeInfo<'a> {
    service_type_description: ServiceTypeDescription<'a>,
    service_manifest_name: &'a str,
    service_manifest_version: &'a str,
    is_service_group: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceTypeDescription<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    is_stateful: bool,
    service_type_name: &'a str,
    placement_constraints: &'a str,
    load_metrics: [&'static str; 0],
    service_placement_policies: [&'static str; 0],
    extensions: Vec<ExtensionInfo<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_persisted_state: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    use_implicit_host: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ExtensionInfo<'a> {
    key: &'a str,
    value: &'a str,
}

impl<'a> ServiceTypeInfo<'a> {
    /// Creates the JSON of a service type. `with_kind` adds `Kind`, which not all gateways write.
    pub(crate) fn new(
        manifest: &'a ServiceManifest,
        service_type: &'a ServiceType,
        with_kind: bool,
    ) -> Self {
        let stateful = service_type.kind == ServiceKind::Stateful;
        let extensions = service_type
            .extensions
            .iter()
            .map(|extension| ExtensionInfo {
                key: &extension.name,
                value: &extension.xml,
            })
            .collect();
        Self {
            service_type_description: ServiceTypeDescription {
                kind: with_kind.then(|| service_type.kind.as_str()),
                is_stateful: stateful,
                service_type_name: &service_type.name,
                placement_constraints: &service_type.placement_constraints,
                load_metrics: [],
                service_placement_policies: [],
                extensions,
                has_persisted_state: stateful.then_some(service_type.has_persisted_state),
                use_implicit_host: (!stateful).then_some(false),
            },
            service_manifest_name: &manifest.name,
            service_manifest_version: &manifest.version,
            is_service_group: false,
        }
    }
}

/// `{"Manifest": "<…/>"}`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Manifest {
    pub(crate) manifest: String,
}

/// `ApplicationNameInfo` and `ServiceNameInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NameInfo<'a> {
    id: String,
    name: &'a str,
}

impl<'a> NameInfo<'a> {
    pub(crate) fn new(name: &'a FabricName, version: ApiVersion) -> Self {
        Self {
            id: id_of(name, version),
            name: name.as_str(),
        }
    }
}
