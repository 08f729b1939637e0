//! `ServiceManifest.xml`.

use super::PackageError;
use super::application::Import;
use super::xml::{self, Element};
use crate::cluster::constraint::check_constraints;
use crate::cluster::entity::{
    CodePackage, EndpointResource, Extension, ServiceKind, ServiceManifest, ServiceType,
};

pub(super) fn read(
    file: &str,
    text: &str,
    import: &Import,
) -> Result<ServiceManifest, PackageError> {
    xml::read(file, text, "ServiceManifest", |root| {
        let (name, version) = (root.attribute("Name")?, root.attribute("Version")?);
        if (name, version) != (import.name.as_str(), import.version.as_str()) {
            let (wanted, of) = (&import.name, &import.version);
            return Err(root.error(format!(
                "this is `{name}` in version `{version}`, but the application manifest imports `{wanted}` in version `{of}`"
            )));
        }
        let endpoints = endpoints(root)?;
        let listeners: Vec<_> = endpoints.iter().map(|of| of.name.clone()).collect();
        let service_types = service_types(root, &listeners)?;
        let mut code_packages = Vec::new();
        for code in root.all("CodePackage") {
            code_packages.push(code_package(code)?);
        }
        // A manifest does not name the process that registers a type. The emulator uses the first code
        // package.
        let first = code_packages
            .first_mut()
            .ok_or_else(|| root.error("it has no `CodePackage`"))?;
        first.hosts = service_types.iter().map(|of| of.name.clone()).collect();
        Ok(ServiceManifest {
            name: name.to_owned(),
            version: version.to_owned(),
            service_types,
            code_packages,
            endpoints,
            manifest: Some(text.into()),
        })
    })
}

fn service_types(
    root: Element<'_, '_>,
    listeners: &[String],
) -> Result<Vec<ServiceType>, PackageError> {
    let mut types: Vec<ServiceType> = Vec::new();
    let described = root.first("ServiceTypes");
    for element in described.iter().flat_map(|of| of.elements()) {
        let kind = match element.name() {
            "StatelessServiceType" => ServiceKind::Stateless,
            "StatefulServiceType" => ServiceKind::Stateful,
            other => {
                return Err(element.error(format!(
                    "`{other}` is not a kind of services that the emulator has: `StatelessServiceType` and `StatefulServiceType` are"
                )));
            }
        };
        let name = element.attribute("ServiceTypeName")?;
        if types.iter().any(|known| known.name == name) {
            return Err(element.error(format!("the service type `{name}` is declared twice")));
        }
        let constraints = element.first("PlacementConstraints").map(Element::text);
        let constraints = constraints.unwrap_or_default();
        check_constraints(constraints).map_err(|error| element.error(error.message))?;
        let extensions = element.first("Extensions");
        let extensions = extensions.iter().flat_map(|of| of.all("Extension"));
        let extensions = extensions.map(|extension| {
            Ok(Extension {
                name: extension.attribute("Name")?.to_owned(),
                xml: extension.inner().to_owned(),
            })
        });
        types.push(ServiceType {
            name: name.to_owned(),
            kind,
            has_persisted_state: kind == ServiceKind::Stateful
                && element.get("HasPersistedState").is_some_and(is_true),
            placement_constraints: constraints.to_owned(),
            extensions: extensions.collect::<Result<_, PackageError>>()?,
            listeners: listeners.to_vec(),
        });
    }
    Ok(types)
}

/// Parses a boolean of XML Schema.
fn is_true(text: &str) -> bool {
    matches!(text.trim(), "true" | "1")
}

fn code_package(code: Element<'_, '_>) -> Result<CodePackage, PackageError> {
    let name = code.attribute("Name")?;
    let entry = code.first("EntryPoint");
    let program = entry.and_then(|entry| {
        let exe = entry.at(&["ExeHost", "Program"]);
        let image = entry.at(&["ContainerHost", "ImageName"]);
        let library = entry.first("DllHost").map(|_| name);
        exe.or(image).map(Element::text).or(library)
    });
    let setup = code.at(&["SetupEntryPoint", "ExeHost", "Program"]);
    Ok(CodePackage {
        name: name.to_owned(),
        version: code.attribute("Version")?.to_owned(),
        hosts: Vec::new(),
        setup: setup.map(|program| program.text().to_owned()),
        program: program
            .filter(|program| !program.is_empty())
            .ok_or_else(|| {
                code.error(format!(
                    "the code package `{name}` has no `EntryPoint` with a `Program` or an `ImageName`"
                ))
            })?
            .to_owned(),
    })
}

fn endpoints(root: Element<'_, '_>) -> Result<Vec<EndpointResource>, PackageError> {
    let mut endpoints: Vec<EndpointResource> = Vec::new();
    let described = root.at(&["Resources", "Endpoints"]);
    for endpoint in described.iter().flat_map(|of| of.all("Endpoint")) {
        let name = endpoint.attribute("Name")?;
        if endpoints.iter().any(|known| known.name == name) {
            return Err(endpoint.error(format!("the endpoint `{name}` is declared twice")));
        }
        let port = match endpoint.get("Port") {
            None => None,
            Some(port) => Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
                endpoint.error(format!(
                    "the endpoint `{name}` has the port `{port}`: 1 to 65535 are possible"
                ))
            })?),
        };
        let protocol = endpoint
            .get("UriScheme")
            .or_else(|| endpoint.get("Protocol"));
        let path = endpoint.get("PathSuffix").unwrap_or_default();
        let path = path.trim_start_matches('/');
        endpoints.push(EndpointResource {
            name: name.to_owned(),
            protocol: protocol.unwrap_or("tcp").to_ascii_lowercase(),
            port,
            path: match path {
                "" => String::new(),
                path => format!("/{path}"),
            },
        });
    }
    Ok(endpoints)
}
