use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::Call;
use crate::gateway::emulator::Dialect;
use crate::gateway::route::Route;
use crate::gateway::shapes::{
    DeployedApplicationInfo, DeployedCodePackageInfo, DeployedReplicaInfo,
    DeployedServicePackageInfo, DeployedServiceTypeInfo, Wide,
};
use crate::gateway::wire::{Answer, ApiError};
use crate::health::EntityKey;
use crate::hosting::PackageKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Nodes/{node}/$/GetApplications", applications),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}",
        application,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServicePackages",
        packages,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServicePackages/{package}",
        package,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetCodePackages",
        code_packages,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServiceTypes",
        service_types,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetServiceTypes/{service_type}",
        service_type,
    ),
    Route::get(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetReplicas",
        replicas,
    ),
    Route::post(
        "/Nodes/{node}/$/GetApplications/{application*}/$/GetCodePackages/$/Restart",
        restart_code_package,
    ),
];

/// Returns the health of an application on a node, if it was requested.
fn health(
    call: &Call<'_>,
    application: &crate::cluster::FabricName,
) -> Result<Option<&'static str>, ApiError> {
    let wanted = call.arguments.flag("IncludeHealthState", false)?;
    Ok(wanted.then(|| {
        call.health_word(&EntityKey::DeployedApplication {
            application: application.clone(),
            node: call.node(),
        })
    }))
}

fn applications(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let node = call.at("node");
    // An invalid flag is an error even if nothing is deployed.
    call.arguments.flag("IncludeHealthState", false)?;
    call.paging()?.answer(
        |page| call.cluster.deployed_applications(node, page),
        |found| {
            let state = health(call, &found.name).ok().flatten();
            DeployedApplicationInfo::new(found, state, node, call.version)
        },
    )
}

fn application(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let (node, name) = (call.at("node"), call.name("application")?);
    let found = call.cluster.deployed_application(node, &name)?;
    let state = health(call, &name)?;
    Answer::entity(
        found
            .as_ref()
            .map(|found| DeployedApplicationInfo::new(found, state, node, call.version)),
    )
}

/// Returns a list, also for a query by name. 204 if it is empty.
fn named<T: Serialize>(found: &[T]) -> Result<Answer, ApiError> {
    Answer::entity(Some(found).filter(|found| !found.is_empty()))
}

fn packages(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call
        .cluster
        .deployed_packages(call.at("node"), &call.name("application")?)?;
    let infos: Vec<DeployedServicePackageInfo<'_>> = found.iter().map(Into::into).collect();
    Answer::json(&infos)
}

fn package(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call
        .cluster
        .deployed_packages(call.at("node"), &call.name("application")?)?;
    let wanted = call.at("package");
    let infos: Vec<DeployedServicePackageInfo<'_>> = found
        .iter()
        .filter(|found| &*found.key.manifest == wanted)
        .map(Into::into)
        .collect();
    named(&infos)
}

fn code_packages(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call
        .cluster
        .deployed_code_packages(call.at("node"), &call.name("application")?)?;
    let manifest = call.arguments.given("ServiceManifestName");
    let name = call.arguments.given("CodePackageName");
    let infos: Vec<_> = found
        .iter()
        .filter(|found| manifest.is_none_or(|wanted| &*found.package.manifest == wanted))
        .filter(|found| name.is_none_or(|wanted| &*found.name == wanted))
        .map(|found| {
            DeployedCodePackageInfo::new(found, call.shared.dialect(), call.shared.epoch())
        })
        .collect();
    Answer::json(&infos)
}

/// Returns the status word of a type that could be registered, but is not.
fn enabled(call: &Call<'_>) -> &'static str {
    match call.shared.dialect() {
        Dialect::Current => "Enabled",
        Dialect::Runtime64 => "NotRegistered",
    }
}

fn service_types(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call
        .cluster
        .deployed_service_types(call.at("node"), &call.name("application")?)?;
    let manifest = call.arguments.given("ServiceManifestName");
    let infos: Vec<_> = found
        .iter()
        .filter(|found| manifest.is_none_or(|wanted| &*found.package.manifest == wanted))
        .map(|found| DeployedServiceTypeInfo::new(found, enabled(call)))
        .collect();
    Answer::json(&infos)
}

fn service_type(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call
        .cluster
        .deployed_service_types(call.at("node"), &call.name("application")?)?;
    let manifest = call.arguments.given("ServiceManifestName");
    let wanted = call.at("service_type");
    let infos: Vec<_> = found
        .iter()
        .filter(|found| &*found.service_type == wanted)
        .filter(|found| manifest.is_none_or(|wanted| &*found.package.manifest == wanted))
        .map(|found| DeployedServiceTypeInfo::new(found, enabled(call)))
        .collect();
    named(&infos)
}

fn replicas(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call
        .cluster
        .deployed_replicas(call.at("node"), &call.name("application")?)?;
    let partition = call
        .arguments
        .given("PartitionId")
        .map(str::parse)
        .transpose()?;
    let manifest = call.arguments.given("ServiceManifestName");
    let infos: Vec<DeployedReplicaInfo<'_>> = found
        .iter()
        .filter(|found| partition.is_none_or(|wanted| found.key.partition == wanted))
        .filter(|found| manifest.is_none_or(|wanted| found.manifest_name == wanted))
        .map(Into::into)
        .collect();
    named(&infos)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Restart {
    service_manifest_name: String,
    #[serde(default)]
    service_package_activation_id: Option<String>,
    code_package_name: String,
    #[serde(default)]
    code_package_instance_id: Option<Wide>,
}

fn restart_code_package(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Restart = call.json()?;
    let application = call.name("application")?;
    let instance = wanted.code_package_instance_id.unwrap_or_default().0;
    let instance = u64::try_from(instance).map_err(|_| {
        ApiError::invalid(format!("CodePackageInstanceId is {instance}, less than 0"))
    })?;
    // The shared package has an empty activation id.
    let process = PackageKey::exclusive(
        application.as_str(),
        &wanted.service_manifest_name,
        &wanted.service_package_activation_id.unwrap_or_default(),
    )
    .process(&wanted.code_package_name);
    let node = call.node();
    call.cluster
        .restart_code_package(&node, &process, instance)?;
    Ok(Answer::empty(StatusCode::OK))
}
