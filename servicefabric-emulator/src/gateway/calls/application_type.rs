use http::StatusCode;
use serde::Deserialize;

use super::Call;
use crate::gateway::emulator::Dialect;
use crate::gateway::route::Route;
use crate::gateway::shapes::{ApplicationTypeInfo, Manifest, ServiceTypeInfo};
use crate::gateway::wire::{Answer, ApiError};

pub(super) const ROUTES: &[Route] = &[
    Route::get("/ApplicationTypes", list),
    Route::get("/ApplicationTypes/{type}", list_by_name),
    Route::get("/ApplicationTypes/{type}/$/GetServiceTypes", service_types),
    Route::get(
        "/ApplicationTypes/{type}/$/GetServiceTypes/{service_type}",
        service_type,
    ),
    Route::get(
        "/ApplicationTypes/{type}/$/GetServiceManifest",
        service_manifest,
    ),
    Route::get(
        "/ApplicationTypes/{type}/$/GetApplicationManifest",
        application_manifest,
    ),
    Route::post("/ApplicationTypes/$/Provision", provision),
    Route::post("/ApplicationTypes/{type}/$/Unprovision", unprovision),
];

fn list(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    types(call, None)
}

fn list_by_name(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    types(call, Some(call.at("type")))
}

/// The bits of `ApplicationTypeDefinitionKindFilter` that include types from packages, which all types here
/// are. 0 includes all.
const PACKAGED: u32 = 1;

fn types(call: &Call<'_>, name: Option<&str>) -> Result<Answer, ApiError> {
    let kinds: u32 = call
        .arguments
        .number("ApplicationTypeDefinitionKindFilter")?
        .unwrap_or(0);
    let all = kinds == 0 || kinds & PACKAGED != 0;
    let bare = call.arguments.flag("ExcludeApplicationParameters", false)?;
    let version = call
        .arguments
        .given("ApplicationTypeVersion")
        .filter(|_| name.is_some());
    // No version is empty, so an empty filter admits nothing.
    let version = if all { version } else { Some("") };
    call.paging()?.answer(
        |page| call.cluster.application_types(name, version, page),
        |found| ApplicationTypeInfo::new(found, !bare),
    )
}

fn with_kind(call: &Call<'_>) -> bool {
    call.shared.dialect() == Dialect::Current
}

fn service_types(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let version = call.arguments.required("ApplicationTypeVersion")?;
    let found = call.cluster.service_types(call.at("type"), version)?;
    let infos: Vec<_> = found
        .into_iter()
        .map(|(manifest, found)| ServiceTypeInfo::new(manifest, found, with_kind(call)))
        .collect();
    Answer::json(&infos)
}

fn service_type(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let version = call.arguments.required("ApplicationTypeVersion")?;
    let found = call
        .cluster
        .application_type(call.at("type"), version)?
        .service_type(call.at("service_type"));
    Answer::entity(
        found.map(|(manifest, found)| ServiceTypeInfo::new(manifest, found, with_kind(call))),
    )
}

fn service_manifest(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let version = call.arguments.required("ApplicationTypeVersion")?;
    let name = call.arguments.required("ServiceManifestName")?;
    let manifest = call
        .cluster
        .service_manifest(call.at("type"), version, name)?;
    Answer::json(&Manifest { manifest })
}

fn application_manifest(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let version = call.arguments.required("ApplicationTypeVersion")?;
    let manifest = call
        .cluster
        .application_manifest(call.at("type"), version)?;
    Answer::json(&Manifest { manifest })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Provision {
    #[serde(default)]
    r#async: bool,
    /// The kind, which is absent before version 6.2.
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    application_type_build_path: Option<String>,
    #[serde(default)]
    application_type_name: Option<String>,
    #[serde(default)]
    application_type_version: Option<String>,
}

/// Provisions the application type at a path: an uploaded package, or a type that the topology holds back.
fn provision(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Provision = call.json()?;
    let path = match wanted.kind.as_deref() {
        None | Some("ImageStorePath") => wanted.application_type_build_path,
        Some("ExternalStore") => wanted
            .application_type_name
            .zip(wanted.application_type_version)
            .map(|(name, version)| format!("{name}/{version}")),
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "Kind is `{other}`, but must be ImageStorePath or ExternalStore"
            )));
        }
    };
    let path = path.ok_or_else(|| ApiError::invalid("the body names no type"))?;
    call.cluster.provision(&path)?;
    Ok(accepted(wanted.r#async))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Unprovision {
    application_type_version: String,
    #[serde(default)]
    r#async: bool,
}

fn unprovision(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Unprovision = call.json()?;
    let name = call.at("type").to_owned();
    call.cluster
        .unprovision(&name, &wanted.application_type_version)?;
    Ok(accepted(wanted.r#async))
}

/// Returns 202 if the caller requested asynchronous work, else 200. The work is complete in both cases.
fn accepted(later: bool) -> Answer {
    Answer::empty(if later {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    })
}
