//! The application types of a topology.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scalar;
use super::error::Problems;
use super::plan::PlannedType;
use crate::cluster::{
    ApplicationType, ApplicationTypeStatus, CodePackage, EndpointResource, Extension, ServiceKind,
    ServiceManifest, ServiceType, labels_xml,
};

/// An application type in one version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ApplicationTypeDescription {
    /// The name. Required.
    pub name: String,
    /// The version. Default: `1.0.0`.
    pub version: Option<String>,
    /// Another version of the same type, from which this one takes all absent values.
    pub based_on: Option<String>,
    /// The parameters with their defaults.
    pub parameters: IndexMap<String, Scalar>,
    /// The service types by name.
    pub service_types: IndexMap<String, ServiceTypeDescription>,
    /// The service manifests by name, for types that need more than one code package in them. Service types
    /// refer to their manifest.
    pub manifests: IndexMap<String, ManifestDescription>,
    /// True if the type is only in the image store: it can be provisioned, but is not. Default: false.
    pub unprovisioned: bool,
}

/// A service type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceTypeDescription {
    /// `stateless` or `stateful`. Default: stateless.
    pub kind: Option<ServiceKind>,
    /// True if the state of a stateful type outlives the process. Default: true.
    pub persisted: Option<bool>,
    /// The manifest that declares it. Default: the name of the type, with `Pkg` in place of `Type`.
    pub manifest: Option<String>,
    /// The labels, which become the extension that `extension` names. A dotted key may be written as tables.
    pub labels: Option<toml::Table>,
    /// The name of the extension with the labels. Default: `YARP-preview`.
    pub extension: Option<String>,
    /// The further extensions by name: XML as text.
    pub extensions: IndexMap<String, String>,
    /// The endpoints of its replicas, by name. Default: `http`.
    pub endpoints: Option<IndexMap<String, EndpointDescription>>,
    /// The placement constraints of its services, such as `NodeType == Front`. Default: any node.
    pub placement_constraints: Option<String>,
}

/// An endpoint of a replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EndpointDescription {
    /// The scheme of the address. Default: `https` for a listener of that name, otherwise `http`.
    pub protocol: Option<String>,
    /// The fixed port. Default: one of the node's ports.
    pub port: Option<u16>,
    /// The part of the address after the port. Default: empty.
    pub path: String,
}

/// A service manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ManifestDescription {
    /// The version. Default: that of the application type.
    pub version: Option<String>,
    /// The code packages by name. Default: one, `Code`, that hosts all service types of the manifest.
    pub code_packages: IndexMap<String, CodePackageDescription>,
}

/// A program of a service manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CodePackageDescription {
    /// The version. Default: that of the manifest.
    pub version: Option<String>,
    /// The service types that it hosts. Default: none, for a helper program.
    pub hosts: Vec<String>,
    /// The setup program, which runs once before the main one. Default: none.
    pub setup: Option<String>,
    /// The program. Default: the name of the code package.
    pub program: Option<String>,
}

/// The default version.
const FIRST_VERSION: &str = "1.0.0";
/// The maximum number of labels of a service type.
const MAX_LABELS: usize = 10_000;

/// Checks the described application types, including those that extend others.
pub(super) fn plan(
    described: &[ApplicationTypeDescription],
    problems: &mut Problems,
) -> Vec<PlannedType> {
    let mut complete: Vec<ApplicationTypeDescription> = Vec::new();
    let mut planned = Vec::new();
    for (index, description) in described.iter().enumerate() {
        let at = format!("application_types[{index}]");
        let mut description = description.clone();
        let version = description
            .version
            .get_or_insert_with(|| FIRST_VERSION.to_owned())
            .clone();
        for (key, text) in [("name", &description.name), ("version", &version)] {
            if text.is_empty() || text.len() > 256 || text.contains(['+', '/']) {
                problems.add(
                    format!("{at}.{key}"),
                    format!("`{text}` cannot be the {key} of an application type"),
                    "write 1 to 256 characters without + and /",
                );
            }
        }
        let same = |other: &&ApplicationTypeDescription| other.name == description.name;
        if complete
            .iter()
            .filter(same)
            .any(|other| other.version.as_deref() == Some(&version))
        {
            problems.add(
                format!("{at}.version"),
                format!(
                    "`{}` is described in version `{version}` before",
                    description.name
                ),
                "give each version a number of its own",
            );
        }
        if let Some(base) = &description.based_on {
            // The base has to come before, so that no version is based on itself.
            let earlier = || complete.iter().filter(same);
            match earlier().find(|other| other.version.as_deref() == Some(base)) {
                Some(base) => description = base.clone().overlaid(description),
                None => problems.unknown(
                    format!("{at}.based_on"),
                    "earlier version",
                    base,
                    earlier().filter_map(|other| other.version.as_deref()),
                ),
            }
        }
        check_parameters(&description.parameters, &at, problems);
        planned.push(PlannedType {
            application_type: description.build(&at, &version, problems),
            provisioned: !description.unprovisioned,
        });
        complete.push(description);
    }
    planned
}

impl ApplicationTypeDescription {
    /// Overlays this description with the values of another one.
    fn overlaid(mut self, other: Self) -> Self {
        self.parameters.extend(other.parameters);
        self.manifests.extend(other.manifests);
        for (name, service_type) in other.service_types {
            let before = self.service_types.shift_remove(&name).unwrap_or_default();
            self.service_types
                .insert(name, before.overlaid(service_type));
        }
        Self {
            name: other.name,
            version: other.version,
            based_on: None,
            unprovisioned: other.unprovisioned,
            ..self
        }
    }

    fn build(&self, at: &str, version: &str, problems: &mut Problems) -> ApplicationType {
        let mut manifests: IndexMap<String, ServiceManifest> = IndexMap::new();
        for (name, described) in &self.manifests {
            manifests.insert(name.clone(), described.build(name, version));
        }
        for (name, described) in &self.service_types {
            let at = format!("{at}.service_types.{name}");
            if name.is_empty() || name.len() > 256 {
                problems.add(&at, "a service type has a name of 1 to 256 characters", "");
            }
            let manifest = described
                .manifest
                .clone()
                .unwrap_or_else(|| format!("{}Pkg", name.strip_suffix("Type").unwrap_or(name)));
            let manifest = manifests
                .entry(manifest.clone())
                .or_insert_with(|| ManifestDescription::default().build(&manifest, version));
            described.add_to(manifest, name, &at, problems);
        }
        // The manifests are completed last, when all of their service types are known.
        for (name, manifest) in &mut manifests {
            let at = format!("{at}.manifests.{name}");
            finish_manifest(manifest, &at, problems);
        }
        ApplicationType {
            name: self.name.clone(),
            version: version.to_owned(),
            default_parameters: texts(&self.parameters),
            service_manifests: manifests.into_values().collect(),
            default_services: Vec::new(),
            status: ApplicationTypeStatus::Available,
            manifest: None,
        }
    }
}

pub(super) fn texts(values: &IndexMap<String, Scalar>) -> IndexMap<String, String> {
    values
        .iter()
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}

impl ManifestDescription {
    fn build(&self, name: &str, version: &str) -> ServiceManifest {
        let version = self.version.clone().unwrap_or_else(|| version.to_owned());
        let code_packages = self.code_packages.iter().map(|(name, code)| CodePackage {
            name: name.clone(),
            version: code.version.clone().unwrap_or_else(|| version.clone()),
            hosts: code.hosts.clone(),
            setup: code.setup.clone(),
            program: code.program.clone().unwrap_or_else(|| name.clone()),
        });
        ServiceManifest {
            name: name.to_owned(),
            service_types: Vec::new(),
            code_packages: code_packages.collect(),
            endpoints: Vec::new(),
            version,
            manifest: None,
        }
    }
}

/// Adds the default code package to a manifest without any, and checks that every type is hosted once.
fn finish_manifest(manifest: &mut ServiceManifest, at: &str, problems: &mut Problems) {
    let types = || {
        manifest
            .service_types
            .iter()
            .map(|found| found.name.as_str())
    };
    // A manifest without code packages gets one that hosts all types.
    if manifest.code_packages.is_empty() {
        let code = CodePackage {
            name: "Code".to_owned(),
            version: manifest.version.clone(),
            hosts: types().map(str::to_owned).collect(),
            setup: None,
            program: manifest.name.clone(),
        };
        manifest.code_packages.push(code);
        return;
    }
    for code in &manifest.code_packages {
        for hosted in &code.hosts {
            if !types().any(|known| known == hosted) {
                let at = format!("{at}.code_packages.{}.hosts", code.name);
                problems.unknown(at, "service type in this manifest", hosted, types());
            }
        }
    }
    for service_type in types() {
        let hosts = manifest.code_packages.iter().flat_map(|code| &code.hosts);
        let count = hosts.filter(|hosted| *hosted == service_type).count();
        if count != 1 {
            problems.add(
                format!("{at}.code_packages"),
                format!("service type `{service_type}` is hosted by {count} code packages"),
                "name it in the `hosts` of exactly one",
            );
        }
    }
}

impl ServiceTypeDescription {
    fn overlaid(mut self, other: Self) -> Self {
        self.extensions.extend(other.extensions);
        let labels = match (self.labels, other.labels) {
            (Some(before), Some(labels)) => Some(merge(before, labels)),
            (before, labels) => labels.or(before),
        };
        Self {
            kind: other.kind.or(self.kind),
            persisted: other.persisted.or(self.persisted),
            manifest: other.manifest.or(self.manifest),
            labels,
            extension: other.extension.or(self.extension),
            extensions: self.extensions,
            endpoints: other.endpoints.or(self.endpoints),
            placement_constraints: other.placement_constraints.or(self.placement_constraints),
        }
    }

    /// Adds the service type to its manifest, with its endpoints.
    fn add_to(
        &self,
        manifest: &mut ServiceManifest,
        name: &str,
        at: &str,
        problems: &mut Problems,
    ) {
        let kind = self.kind.unwrap_or_default();
        if self.persisted.is_some() && kind == ServiceKind::Stateless {
            problems.add(
                format!("{at}.persisted"),
                "a stateless service has no state",
                "leave it out, or write kind = \"stateful\"",
            );
        }
        let constraints = self.placement_constraints.clone().unwrap_or_default();
        if let Err(error) = crate::cluster::check_constraints(&constraints) {
            problems.add(format!("{at}.placement_constraints"), error.message, "");
        }
        let mut extensions = Vec::new();
        if let Some(labels) = &self.labels {
            let mut flat = Vec::new();
            flatten(labels, "", &format!("{at}.labels"), 0, &mut flat, problems);
            let named = self
                .extension
                .clone()
                .unwrap_or_else(|| "YARP-preview".to_owned());
            let pairs = flat
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()));
            extensions.push(Extension {
                name: named,
                xml: labels_xml(pairs),
            });
        }
        for (name, xml) in &self.extensions {
            if let Err(error) = check_xml(xml) {
                problems.add(
                    format!("{at}.extensions.{name}"),
                    format!("this is not valid in a service manifest: {error}"),
                    "write elements that are well-formed, without an XML declaration",
                );
            }
            extensions.push(Extension {
                name: name.clone(),
                xml: xml.clone(),
            });
        }
        let default = || IndexMap::from([("http".to_owned(), EndpointDescription::default())]);
        let endpoints = self.endpoints.clone().unwrap_or_else(default);
        for (name, endpoint) in &endpoints {
            if !endpoint.path.is_empty() && !endpoint.path.starts_with('/') {
                problems.add(
                    format!("{at}.endpoints.{name}.path"),
                    format!("`{}` is not a path", endpoint.path),
                    "begin it with /",
                );
            }
            endpoint.check(&format!("{at}.endpoints.{name}"), problems);
            let resource = endpoint.build(name);
            let same_port = |other: &&String| {
                let port = endpoints.get(*other).and_then(|other| other.port);
                port.is_some() && port == endpoint.port
            };
            // A shared port is reported once, at the later endpoint.
            let mut earlier = endpoints.keys().take_while(|other| *other != name);
            if let Some(other) = earlier.find(same_port) {
                problems.add(
                    format!("{at}.endpoints.{name}.port"),
                    format!("listener `{other}` has this port too"),
                    "give each a port of its own, or leave it to the node",
                );
            }
            // The service types of a manifest may share an endpoint that both describe equally.
            let other = manifest.endpoints.iter().find(|other| other.name == *name);
            match other {
                None => manifest.endpoints.push(resource),
                Some(other) if *other != resource => problems.add(
                    format!("{at}.endpoints.{name}"),
                    format!(
                        "manifest `{}` has another endpoint of this name",
                        manifest.name
                    ),
                    "give it another name, or put the service type into another manifest",
                ),
                Some(_) => {}
            }
        }
        manifest.service_types.push(ServiceType {
            name: name.to_owned(),
            kind,
            has_persisted_state: kind == ServiceKind::Stateful && self.persisted.unwrap_or(true),
            placement_constraints: constraints,
            extensions,
            listeners: endpoints.keys().cloned().collect(),
        });
    }
}

/// The valid schemes of an endpoint.
const PROTOCOLS: [&str; 4] = ["http", "https", "tcp", "udp"];

/// Checks that a text is valid content of an element of a service manifest.
fn check_xml(text: &str) -> Result<(), roxmltree::Error> {
    // An extension is a fragment, so the check gives it a root.
    roxmltree::Document::parse(&format!("<Extension>{text}</Extension>")).map(drop)
}

/// Checks the parameters. Their names are case-insensitive.
fn check_parameters(parameters: &IndexMap<String, Scalar>, at: &str, problems: &mut Problems) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in parameters.keys() {
        if let Some(other) = seen.insert(name.to_ascii_lowercase(), name) {
            problems.add(
                format!("{at}.parameters.{name}"),
                format!("`{other}` is the same parameter: upper and lower case do not matter"),
                "leave out one of them",
            );
        }
    }
}

impl EndpointDescription {
    fn check(&self, at: &str, problems: &mut Problems) {
        if let Some(protocol) = &self.protocol
            && !PROTOCOLS.contains(&protocol.as_str())
        {
            let known = PROTOCOLS.iter().copied();
            problems.unknown(format!("{at}.protocol"), "protocol", protocol, known);
        }
        if self.port == Some(0) {
            problems.add(
                format!("{at}.port"),
                "0 is not a port to listen on",
                "leave it out for one that the node gives",
            );
        }
    }

    fn build(&self, name: &str) -> EndpointResource {
        let default = if name.eq_ignore_ascii_case("https") {
            "https"
        } else {
            "http"
        };
        EndpointResource {
            name: name.to_owned(),
            protocol: self.protocol.clone().unwrap_or_else(|| default.to_owned()),
            port: self.port,
            path: self.path.clone(),
        }
    }
}

/// Overlays labels with others; tables are merged.
fn merge(mut before: toml::Table, labels: toml::Table) -> toml::Table {
    for (key, value) in labels {
        let merged = match (before.remove(&key), value) {
            (Some(toml::Value::Table(before)), toml::Value::Table(value)) => {
                toml::Value::Table(merge(before, value))
            }
            (_, value) => value,
        };
        before.insert(key, merged);
    }
    before
}

/// Joins the keys of nested tables with dots.
fn flatten(
    table: &toml::Table,
    prefix: &str,
    at: &str,
    depth: usize,
    flat: &mut Vec<(String, String)>,
    problems: &mut Problems,
) {
    for (key, value) in table {
        let key = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        let text = match value {
            // The limit keeps deep tables from exhausting the stack.
            toml::Value::Table(inner) if depth < 32 => {
                flatten(inner, &key, at, depth + 1, flat, problems);
                continue;
            }
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(truth) => truth.to_string(),
            toml::Value::Datetime(date) => date.to_string(),
            toml::Value::Array(_) | toml::Value::Table(_) => {
                problems.add(
                    format!("{at}.{key}"),
                    "a label is a text, a number or a truth value",
                    "write a list as one text, such as \"a.com,b.com\"",
                );
                continue;
            }
        };
        if flat.len() >= MAX_LABELS {
            problems.add(
                at,
                format!("a service type has at most {MAX_LABELS} labels"),
                "",
            );
            return;
        }
        flat.push((key, text));
    }
}
