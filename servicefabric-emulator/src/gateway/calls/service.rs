use http::StatusCode;

use super::Call;
use super::body::{ServiceBody, UpdateBody};
use crate::cluster::{Cluster, ErrorCode, FabricName, PartitionKey, Service};
use crate::gateway::route::Route;
use crate::gateway::shapes::{
    NameInfo, ResolvedPartitionInfo, ServiceDescriptionInfo, ServiceInfo, word,
};
use crate::gateway::wire::{Answer, ApiError, ApiVersion};
use crate::health::EntityKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Applications/{application*}/$/GetServices", list),
    Route::get("/Applications/{application*}/$/GetServices/{service*}", one),
    Route::post(
        "/Applications/{application*}/$/GetServices/$/Create",
        create,
    ),
    Route::get(
        "/Services/{service*}/$/GetApplicationName",
        application_name,
    ),
    Route::get("/Services/{service*}/$/GetDescription", description),
    Route::get("/Services/{service*}/$/ResolvePartition", resolve),
    Route::post("/Services/{service*}/$/Update", update),
    Route::post("/Services/{service*}/$/Delete", delete),
];

fn list(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let application = call.name("application")?;
    let wanted = call.arguments.given("ServiceTypeName");
    let paging = if call.version >= ApiVersion::V6_4 {
        call.paging()?
    } else {
        call.paging_by_token()?
    };
    paging.answer(
        |page| call.cluster.services(&application, wanted, page),
        |service| info(call.cluster, service, call.version),
    )
}

fn one(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let application = call.name("application")?;
    if call.cluster.application(&application).is_none() {
        return Err(ApiError::new(
            ErrorCode::ApplicationNotFound,
            format!("there is no application '{application}'"),
        ));
    }
    let service = call
        .cluster
        .service(&call.name("service")?)
        .filter(|service| service.application == application);
    Answer::entity(service.map(|service| info(call.cluster, service, call.version)))
}

fn info<'a>(cluster: &Cluster, service: &'a Service, version: ApiVersion) -> ServiceInfo<'a> {
    let key = EntityKey::Service(service.name.clone());
    ServiceInfo::new(service, word(cluster.health_state(&key)), version)
}

fn create(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let application = call.name("application")?;
    let creation = call.json::<ServiceBody>()?.creation(application)?;
    call.cluster.create_service(creation)?;
    Ok(Answer::empty(StatusCode::ACCEPTED))
}

fn existing<'a>(cluster: &'a Cluster, name: &FabricName) -> Result<&'a Service, ApiError> {
    cluster.service(name).ok_or_else(|| {
        ApiError::new(
            ErrorCode::ServiceDoesNotExist,
            format!("there is no service '{name}'"),
        )
    })
}

fn application_name(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let service = existing(call.cluster, &call.name("service")?)?;
    Answer::json(&NameInfo::new(&service.application, call.version))
}

fn description(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let service = existing(call.cluster, &call.name("service")?)?;
    Answer::json(&ServiceDescriptionInfo::new(service))
}

fn resolve(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let service = call.name("service")?;
    let value = call.arguments.get("PartitionKeyValue");
    let key = match call.arguments.number("PartitionKeyType")?.unwrap_or(1) {
        1 => PartitionKey::None,
        2 => {
            let value = value.unwrap_or_default();
            PartitionKey::Int64(value.parse().map_err(|_| {
                ApiError::new(
                    ErrorCode::InvalidPartitionKey,
                    format!("PartitionKeyValue is `{value}`, but must be a number of 64 bits"),
                )
            })?)
        }
        3 => {
            let value = value.ok_or_else(|| ApiError::missing("PartitionKeyValue"))?;
            PartitionKey::Named(value.to_owned())
        }
        other => {
            return Err(ApiError::invalid(format!(
                "PartitionKeyType is {other}, but must be 1 (none), 2 (Int64Range) or 3 (Named)"
            )));
        }
    };
    let previous = call.arguments.given("PreviousRspVersion");
    let resolved = call.cluster.resolve(&service, &key, previous)?;
    Answer::json(&ResolvedPartitionInfo::new(&resolved))
}

fn update(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("service")?;
    let kind = call.cluster.service(&name).map(|service| service.kind);
    let update = call.json::<UpdateBody>()?.update(kind)?;
    call.cluster.update_service(&name, update)?;
    Ok(Answer::done())
}

fn delete(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    // The flag is only checked, since nothing delays the removal.
    call.arguments.flag("ForceRemove", false)?;
    let name = call.name("service")?;
    call.cluster.delete_service(&name)?;
    Ok(Answer::done())
}
