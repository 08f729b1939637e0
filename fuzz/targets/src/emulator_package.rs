//! Application packages for the emulator.

use servicefabric_emulator::cluster::{
    ApplicationCreation, ApplicationType, Cluster, FabricName, PackageError,
};
use servicefabric_emulator::topology::Topology;

use crate::input::text;

/// Line between the two manifests.
const SEPARATOR: &str = "\n----\n";

/// Fuzzes an application manifest with one service manifest, which stands for every package that it
/// imports.
///
/// * Two readings give the same result. An error names a file of the package.
/// * A valid package is provisioned with its manifest as written, or its name is rejected.
/// * An application of this type is created with all default services, or not at all.
pub fn emulator_package(data: &[u8]) {
    let text = text(data);
    let (application, service) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
    let read = || {
        ApplicationType::from_package(|file| match file {
            "ApplicationManifest.xml" => Some(application.to_owned()),
            _ => Some(service.to_owned()),
        })
    };
    let package = read();
    assert_eq!(package, read());
    let package = match package {
        Ok(package) => package,
        Err(PackageError { file, message, .. }) => {
            assert!(file.ends_with(".xml") && !message.is_empty());
            return;
        }
    };
    let mut cluster = Cluster::new(&Topology::default()).expect("it is the default");
    let (name, version) = (package.name.clone(), package.version.clone());
    let services = package.default_services.len();
    if let Err(error) = cluster.provision_type(package) {
        assert!(!error.message.is_empty());
        return;
    }
    let manifest = cluster.application_manifest(&name, &version);
    assert_eq!(manifest.as_deref(), Ok(application));
    let shop = FabricName::parse("fabric:/Shop").expect("it is a name");
    let creation = ApplicationCreation::new(shop.clone(), &name, &version);
    let created = cluster.create_application(creation);
    let found = cluster.application(&shop).map(|found| found.services.len());
    match created {
        Ok(()) => assert_eq!(found, Some(services)),
        Err(error) => {
            assert!(!error.message.is_empty());
            assert_eq!(found, None);
        }
    }
}
