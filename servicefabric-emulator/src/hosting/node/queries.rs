//! Queries of the state of a node.

use std::sync::Arc;

use super::Node;
use super::state::{Code, CodeState, EntryPoint, Package, PackageState};
use super::timers::TimerId;
use crate::hosting::deployed::{
    DeployedApplication, DeployedCodePackage, DeployedEntryPoint, DeployedPackage, DeployedReplica,
    DeployedServiceType, DeploymentStatus, EntryPointStatus, SlotStatus,
};
use crate::hosting::event::Phase;
use crate::hosting::key::PackageKey;

impl Node {
    /// The applications on the node, by name.
    pub fn applications(&self) -> Vec<DeployedApplication> {
        self.applications
            .iter()
            .map(|(name, application)| DeployedApplication {
                name: Arc::clone(name),
                status: if application.closing {
                    DeploymentStatus::Deactivating
                } else if self
                    .instances(name)
                    .any(|(_, package)| package.is_upgrading())
                {
                    DeploymentStatus::Upgrading
                } else {
                    DeploymentStatus::Active
                },
                usage: application.usage,
                unused_since: application.unused_since,
                deactivation: application.deactivation.map(TimerId::due),
            })
            .collect()
    }

    /// The package instances of an application on the node, by name.
    pub fn packages(&self, application: &str) -> Vec<DeployedPackage> {
        self.instances(application)
            .map(|(key, package)| DeployedPackage {
                key: key.clone(),
                version: Arc::clone(&package.description.version),
                status: status(package),
                usage: package.usage,
                unused_since: package.unused_since,
                deactivation: package.deactivation.map(TimerId::due),
                next_attempt: package
                    .operation
                    .as_ref()
                    .filter(|operation| !operation.attempting)
                    .and_then(|operation| operation.timer)
                    .map(TimerId::due),
            })
            .collect()
    }

    /// The code packages of an application on the node, by package instance, in the order of their manifests.
    pub fn code_packages(&self, application: &str) -> Vec<DeployedCodePackage> {
        let instances = self.instances(application);
        instances
            .flat_map(|(key, package)| {
                let codes = package.codes.iter().enumerate();
                codes.map(move |(index, code)| code_package(key, package, index, code))
            })
            .collect()
    }

    /// The service types of an application on the node, by package instance, in the order of their manifests.
    pub fn service_types(&self, application: &str) -> Vec<DeployedServiceType> {
        let instances = self.instances(application);
        instances
            .flat_map(|(key, package)| {
                package
                    .types
                    .iter()
                    .map(|service_type| DeployedServiceType {
                        package: key.clone(),
                        service_type: Arc::clone(&service_type.name),
                        code_package: Arc::clone(&package.about(service_type.code).name),
                        status: service_type.status,
                        disable_at: service_type.disable.map(TimerId::due),
                    })
            })
            .collect()
    }

    /// The replicas on the node, waiting and open, by key.
    pub fn replicas(&self) -> Vec<DeployedReplica> {
        self.slots
            .values()
            .map(|slot| {
                let placement = &slot.placement;
                let package = self.packages.get(&placement.package);
                let host = package.and_then(|package| {
                    let code = package.service_type(&placement.service_type)?.code;
                    Some((
                        &package.about(code).name,
                        package.codes[code].main.process_id,
                    ))
                });
                DeployedReplica {
                    placement: placement.clone(),
                    status: slot.status,
                    next_poll: slot.poll.map(TimerId::due),
                    code_package: host.map(|(name, _)| Arc::clone(name)),
                    process_id: host
                        .and_then(|(_, process_id)| process_id)
                        .filter(|_| slot.status == SlotStatus::Open),
                }
            })
            .collect()
    }

    fn instances(&self, application: &str) -> impl Iterator<Item = (&PackageKey, &Package)> {
        self.packages
            .range(PackageKey::shared(application, "")..)
            .take_while(move |(key, _)| *key.application == *application)
    }
}

fn status(package: &Package) -> DeploymentStatus {
    let phase = package.operation.as_ref().map(|operation| operation.phase);
    match (package.state, phase) {
        (PackageState::Deactivating, _) => DeploymentStatus::Deactivating,
        _ if package.is_upgrading() => DeploymentStatus::Upgrading,
        (PackageState::Starting, Some(Phase::Download)) => DeploymentStatus::Downloading,
        (PackageState::Starting | PackageState::Replacing, _) => DeploymentStatus::Activating,
        (PackageState::Active, _) => DeploymentStatus::Active,
    }
}

fn code_package(
    key: &PackageKey,
    package: &Package,
    index: usize,
    code: &Code,
) -> DeployedCodePackage {
    let about = package.about(index);
    let status = match (status(package), code.state) {
        (DeploymentStatus::Active, CodeState::Completed) => DeploymentStatus::RanToCompletion,
        (
            DeploymentStatus::Active,
            CodeState::NotStarted | CodeState::Setup | CodeState::SetupBackingOff,
        ) => DeploymentStatus::Activating,
        (other, _) => other,
    };
    let next_start = code.timer.map(TimerId::due);
    let setup_status = match code.state {
        CodeState::Setup => EntryPointStatus::Started,
        CodeState::SetupBackingOff => EntryPointStatus::Pending,
        CodeState::NotStarted if code.setup.instance_id == 0 => EntryPointStatus::Pending,
        _ => EntryPointStatus::Stopped,
    };
    let main_status = match code.state {
        CodeState::NotStarted
        | CodeState::Setup
        | CodeState::SetupBackingOff
        | CodeState::BackingOff => EntryPointStatus::Pending,
        CodeState::Running => EntryPointStatus::Started,
        CodeState::Stopping => EntryPointStatus::Stopping,
        CodeState::Completed | CodeState::Stopped => EntryPointStatus::Stopped,
    };
    DeployedCodePackage {
        package: key.clone(),
        name: Arc::clone(&about.name),
        version: Arc::clone(&about.version),
        host_type: about.host_type,
        status,
        setup: about.setup.as_ref().map(|location| DeployedEntryPoint {
            next_activation: next_start.filter(|_| code.state == CodeState::SetupBackingOff),
            ..entry_point(location, &code.setup, setup_status)
        }),
        main: DeployedEntryPoint {
            next_activation: next_start.filter(|_| code.state == CodeState::BackingOff),
            ..entry_point(&about.main, &code.main, main_status)
        },
    }
}

fn entry_point(
    location: &Arc<str>,
    state: &EntryPoint,
    status: EntryPointStatus,
) -> DeployedEntryPoint {
    DeployedEntryPoint {
        location: Arc::clone(location),
        process_id: state.process_id,
        status,
        next_activation: None,
        instance_id: state.instance_id,
        statistics: state.statistics,
    }
}
