use super::Call;
use crate::cluster::{Cluster, ErrorCode, FabricName, Partition};
use crate::gateway::route::Route;
use crate::gateway::shapes::{NameInfo, PartitionInfo};
use crate::gateway::wire::{Answer, ApiError};
use crate::health::EntityKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Services/{service*}/$/GetPartitions", list),
    Route::get("/Partitions/{partition}", one),
    Route::get("/Partitions/{partition}/$/GetServiceName", service_name),
    Route::post("/Partitions/{partition}/$/MovePrimaryReplica", move_primary).since(6, 5),
    Route::post(
        "/Partitions/{partition}/$/MoveSecondaryReplica",
        move_secondary,
    )
    .since(6, 5),
    Route::post(
        "/Services/{service*}/$/GetPartitions/{partition}/$/MoveInstance",
        move_instance,
    )
    .since(8, 0),
];

fn list(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let service = call.name("service")?;
    call.paging_by_token()?.answer(
        |page| call.cluster.partitions(&service, page),
        |partition| info(call, partition),
    )
}

fn one(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let partition = call.cluster.partition(call.partition()?);
    Answer::entity(partition.map(|partition| info(call, partition)))
}

fn info<'a>(call: &Call<'_>, partition: &'a Partition) -> PartitionInfo<'a> {
    let health = call.health_word(&EntityKey::Partition(partition.id));
    PartitionInfo::new(partition, health, call.version, call.shared.dialect())
}

fn service_name(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let id = call.partition()?;
    let partition = call.cluster.partition(id).ok_or_else(|| {
        ApiError::new(
            ErrorCode::PartitionNotFound,
            format!("there is no partition '{id}'"),
        )
    })?;
    Answer::json(&NameInfo::new(&partition.service, call.version))
}

fn move_primary(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let partition = call.partition()?;
    let node = call.arguments.given("NodeName");
    call.cluster.move_primary(partition, node)?;
    Ok(Answer::done())
}

fn move_secondary(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let partition = call.partition()?;
    let from = call.arguments.required("CurrentNodeName")?;
    let to = call.arguments.given("NewNodeName");
    call.cluster.move_secondary(partition, from, to)?;
    Ok(Answer::done())
}

fn move_instance(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let (service, id) = (call.name("service")?, call.partition()?);
    check_owner(call.cluster, &service, id)?;
    let from = call.arguments.given("CurrentNodeName");
    let to = call.arguments.given("NewNodeName");
    call.cluster.move_instance(id, from, to)?;
    Ok(Answer::done())
}

/// Checks that the partition of the path belongs to the service of the path.
fn check_owner(
    cluster: &Cluster,
    service: &FabricName,
    id: crate::cluster::PartitionId,
) -> Result<(), ApiError> {
    match cluster.partition(id) {
        Some(partition) if partition.service == *service => Ok(()),
        _ => Err(ApiError::new(
            ErrorCode::PartitionNotFound,
            format!("service '{service}' has no partition '{id}'"),
        )),
    }
}
