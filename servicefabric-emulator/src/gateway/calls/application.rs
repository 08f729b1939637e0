use http::StatusCode;
use indexmap::IndexMap;
use serde::Deserialize;

use super::Call;
use crate::cluster::{Application, ApplicationCreation, Cluster, FabricName};
use crate::gateway::route::Route;
use crate::gateway::shapes::{ApplicationInfo, Parameter, word};
use crate::gateway::wire::{Answer, ApiError, ApiVersion};
use crate::health::EntityKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Applications", list),
    Route::get("/Applications/{application*}", one),
    Route::post("/Applications/$/Create", create),
    Route::post("/Applications/{application*}/$/Delete", delete),
];

/// The bits of `ApplicationDefinitionKindFilter` that include applications described to the cluster, which
/// all are here. 0 includes all.
const DESCRIBED: u32 = 1;

fn list(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let kinds: u32 = call
        .arguments
        .number("ApplicationDefinitionKindFilter")?
        .unwrap_or(0);
    let bare = call.arguments.flag("ExcludeApplicationParameters", false)?;
    let wanted = call.arguments.given("ApplicationTypeName");
    // No type has an empty name, so an empty filter admits nothing.
    let wanted = if kinds == 0 || kinds & DESCRIBED != 0 {
        wanted
    } else {
        Some("")
    };
    call.paging()?.answer(
        |page| Ok(call.cluster.applications(wanted, page)),
        |application| info(call.cluster, application, bare, call.version),
    )
}

fn one(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let bare = call.arguments.flag("ExcludeApplicationParameters", false)?;
    let found = call.cluster.application(&call.name("application")?);
    Answer::entity(found.map(|found| info(call.cluster, found, bare, call.version)))
}

fn info<'a>(
    cluster: &Cluster,
    application: &'a Application,
    bare: bool,
    version: ApiVersion,
) -> ApplicationInfo<'a> {
    let key = EntityKey::Application(application.name.clone());
    ApplicationInfo::new(
        application,
        word(cluster.health_state(&key)),
        !bare,
        version,
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Creation {
    name: String,
    type_name: String,
    type_version: String,
    #[serde(default)]
    parameter_list: Option<Vec<Parameter>>,
}

fn create(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Creation = call.json()?;
    let name = FabricName::parse(&wanted.name)?;
    let creation = ApplicationCreation::new(name, &wanted.type_name, &wanted.type_version)
        .with_parameters(map(wanted.parameter_list));
    call.cluster.create_application(creation)?;
    Ok(Answer::empty(StatusCode::CREATED))
}

/// Collects the parameters of a list. The last one of a name counts.
pub(super) fn map(parameters: Option<Vec<Parameter>>) -> IndexMap<String, String> {
    parameters
        .unwrap_or_default()
        .into_iter()
        .map(|parameter| (parameter.key, parameter.value))
        .collect()
}

fn delete(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    call.arguments.flag("ForceRemove", false)?;
    let name = call.name("application")?;
    call.cluster.delete_application(&name)?;
    Ok(Answer::done())
}
