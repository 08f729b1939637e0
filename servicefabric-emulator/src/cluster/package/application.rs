//! `ApplicationManifest.xml`.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::default_service::DefaultService;
use super::xml::{self, Element};
use super::{APPLICATION_MANIFEST, PackageError};

/// The parts of an application manifest that the emulator uses.
#[derive(Debug)]
pub(super) struct ApplicationManifest {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) parameters: IndexMap<String, String>,
    pub(super) imports: Vec<Import>,
    pub(super) default_services: Vec<DefaultService>,
}

/// A service manifest that the application consists of.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) name: String,
    pub(super) version: String,
}

pub(super) fn read(text: &str) -> Result<ApplicationManifest, PackageError> {
    xml::read(APPLICATION_MANIFEST, text, "ApplicationManifest", |root| {
        let mut parameters = IndexMap::new();
        for parameter in root
            .at(&["Parameters"])
            .iter()
            .flat_map(|of| of.all("Parameter"))
        {
            let name = parameter.attribute("Name")?;
            let value = parameter.get("DefaultValue").unwrap_or_default();
            let mut known = parameters.keys();
            if known.any(|known: &String| known.eq_ignore_ascii_case(name)) {
                return Err(parameter.error(format!("the parameter `{name}` is declared twice")));
            }
            parameters.insert(name.to_owned(), value.to_owned());
        }
        let mut default_services = Vec::new();
        let described = root.first("DefaultServices");
        for service in described.iter().flat_map(|of| of.all("Service")) {
            default_services.push(DefaultService::read(service)?);
        }
        Ok(ApplicationManifest {
            name: root.attribute("ApplicationTypeName")?.to_owned(),
            version: root.attribute("ApplicationTypeVersion")?.to_owned(),
            imports: imports(root)?,
            parameters,
            default_services,
        })
    })
}

fn imports(root: Element<'_, '_>) -> Result<Vec<Import>, PackageError> {
    let mut imports = Vec::new();
    let mut seen = HashSet::new();
    for import in root.all("ServiceManifestImport") {
        let reference = import
            .first("ServiceManifestRef")
            .ok_or_else(|| import.error("a `ServiceManifestImport` has no `ServiceManifestRef`"))?;
        let name = reference.attribute("ServiceManifestName")?;
        // The name is that of a directory.
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(reference.error(format!("`{name}` is not the name of a service manifest")));
        }
        if !seen.insert(name) {
            return Err(reference.error(format!("`{name}` is imported twice")));
        }
        imports.push(Import {
            name: name.to_owned(),
            version: reference.attribute("ServiceManifestVersion")?.to_owned(),
        });
    }
    match imports.is_empty() {
        true => Err(root.error("it imports no service manifest: add a `ServiceManifestImport`")),
        false => Ok(imports),
    }
}
