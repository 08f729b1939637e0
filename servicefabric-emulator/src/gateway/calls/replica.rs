use super::Call;
use crate::cluster::{Cluster, ErrorCode, Partition, Replica};
use crate::gateway::route::Route;
use crate::gateway::shapes::{ReplicaInfo, word};
use crate::gateway::wire::{Answer, ApiError};
use crate::health::EntityKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Partitions/{partition}/$/GetReplicas", list),
    Route::get("/Partitions/{partition}/$/GetReplicas/{replica}", one),
    Route::post(
        "/Nodes/{node}/$/GetPartitions/{partition}/$/GetReplicas/{replica}/$/Restart",
        restart,
    ),
    Route::post(
        "/Nodes/{node}/$/GetPartitions/{partition}/$/GetReplicas/{replica}/$/Delete",
        remove,
    ),
];

fn existing(cluster: &Cluster, id: crate::cluster::PartitionId) -> Result<&Partition, ApiError> {
    cluster.partition(id).ok_or_else(|| {
        ApiError::new(
            ErrorCode::PartitionNotFound,
            format!("there is no partition '{id}'"),
        )
    })
}

fn list(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let partition = existing(call.cluster, call.partition()?)?;
    call.paging_by_token()?.answer(
        |page| call.cluster.replicas(partition.id, page),
        |replica| info(call.cluster, partition, replica),
    )
}

fn one(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let key = call.replica()?;
    let partition = existing(call.cluster, key.partition)?;
    let replica = partition.replicas.get(&key.replica);
    Answer::entity(replica.map(|replica| info(call.cluster, partition, replica)))
}

fn info<'a>(cluster: &Cluster, partition: &Partition, replica: &'a Replica) -> ReplicaInfo<'a> {
    let health = word(cluster.health_state(&EntityKey::Replica(replica.key)));
    ReplicaInfo::new(partition.kind, replica, health)
}

fn restart(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let (node, replica) = (call.node(), call.replica()?);
    call.cluster.restart_replica(&node, replica)?;
    Ok(Answer::done())
}

fn remove(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let force = call.arguments.flag("ForceRemove", false)?;
    let (node, replica) = (call.node(), call.replica()?);
    call.cluster.remove_replica(&node, replica, force)?;
    Ok(Answer::done())
}
