use http::StatusCode;
use serde::Deserialize;

use super::Call;
use crate::cluster::{BatchOutcome, FabricName, Page, PropertyOperation};
use crate::gateway::route::Route;
use crate::gateway::shapes::{BatchInfo, OperationBody, PropertyInfo, ValueBody};
use crate::gateway::wire::{Answer, ApiError};

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Names/{name*}", exists),
    Route::post("/Names/$/Create", create),
    Route::delete("/Names/{name*}", delete),
    Route::get("/Names/{name*}/$/GetSubNames", sub_names),
    Route::get("/Names/{name*}/$/GetProperties", properties),
    Route::get("/Names/{name*}/$/GetProperty", property),
    Route::put("/Names/{name*}/$/GetProperty", put_property),
    Route::delete("/Names/{name*}/$/GetProperty", delete_property),
    Route::post("/Names/{name*}/$/GetProperties/$/SubmitBatch", submit_batch),
];

/// A page is a snapshot, and tokens are names, so no item appears twice.
const CONSISTENT: &str = "\"IsConsistent\":true,";

fn exists(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let found = call.cluster.name_exists(&call.name("name")?);
    Ok(Answer::empty(if found {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    }))
}

fn create(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase", expecting = "an object")]
    struct Name {
        name: String,
    }
    let wanted: Name = call.json()?;
    call.cluster.create_name(FabricName::parse(&wanted.name)?)?;
    Ok(Answer::empty(StatusCode::CREATED))
}

fn delete(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("name")?;
    call.cluster.delete_name(&name)?;
    Ok(Answer::done())
}

fn sub_names(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("name")?;
    let recursive = call.arguments.flag("Recursive", false)?;
    let page = call.paging_by_token()?.render(
        |page| {
            let found = call.cluster.sub_names(&name, recursive, page)?;
            Ok(Page {
                items: found.names,
                continuation_token: found.continuation_token,
            })
        },
        |name| name.as_str().to_owned(),
    )?;
    Ok(page.wrapped(CONSISTENT, "SubNames"))
}

fn properties(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("name")?;
    let with_values = call.arguments.flag("IncludeValues", false)?;
    let epoch = call.shared.epoch();
    let page = call.paging_by_token()?.render(
        |page| call.cluster.properties(&name, page),
        |property| PropertyInfo::new(property, with_values, epoch),
    )?;
    Ok(page.wrapped(CONSISTENT, "Properties"))
}

fn property(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted = call.arguments.required("PropertyName")?;
    let found = call.cluster.property(&call.name("name")?, wanted)?;
    Answer::json(&PropertyInfo::new(found, true, call.shared.epoch()))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Description {
    property_name: String,
    value: ValueBody,
    #[serde(default)]
    custom_type_id: Option<String>,
}

fn put_property(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Description = call.json()?;
    let name = call.name("name")?;
    call.cluster.put_property(
        &name,
        &wanted.property_name,
        wanted.value.into(),
        &wanted.custom_type_id.unwrap_or_default(),
    )?;
    Ok(Answer::done())
}

fn delete_property(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("name")?;
    let wanted = call.arguments.required("PropertyName")?;
    call.cluster.delete_property(&name, wanted)?;
    Ok(Answer::done())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Batch {
    operations: Vec<OperationBody>,
}

fn submit_batch(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Batch = call.json()?;
    let operations: Vec<PropertyOperation> =
        wanted.operations.into_iter().map(Into::into).collect();
    let name = call.name("name")?;
    let outcome = call.cluster.submit_batch(&name, &operations)?;
    let mut answer = Answer::json(&BatchInfo::new(&outcome, call.shared.epoch()))?;
    if matches!(outcome, BatchOutcome::Failed { .. }) {
        answer.status = StatusCode::CONFLICT;
    }
    Ok(answer)
}
