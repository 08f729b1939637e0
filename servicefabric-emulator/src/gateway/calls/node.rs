use serde::Deserialize;

use super::Call;
use crate::cluster::{Cluster, DeactivationIntent, Node, NodeStatusFilter};
use crate::gateway::route::Route;
use crate::gateway::shapes::{NodeInfo, Wide, word};
use crate::gateway::wire::{Answer, ApiError, ClockStart};
use crate::health::EntityKey;

pub(super) const ROUTES: &[Route] = &[
    Route::get("/Nodes", list),
    Route::get("/Nodes/{node}", one),
    Route::post("/Nodes/{node}/$/Deactivate", deactivate),
    Route::post("/Nodes/{node}/$/Activate", activate),
    Route::post("/Nodes/{node}/$/Restart", restart),
];

fn list(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let filter = match call.arguments.given("NodeStatusFilter") {
        None => NodeStatusFilter::default(),
        Some(word) => NodeStatusFilter::from_word(word).ok_or_else(|| {
            ApiError::invalid(format!(
                "NodeStatusFilter is `{word}`, but must be default, all, up, down, enabling, disabling, disabled, unknown or removed"
            ))
        })?,
    };
    let epoch = call.shared.epoch();
    let cluster = &*call.cluster;
    call.paging()?.answer(
        |page| Ok(cluster.nodes(filter, page)),
        |node| info(cluster, node, epoch),
    )
}

fn one(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let node = call.cluster.node(call.at("node"));
    Answer::entity(node.map(|node| info(call.cluster, node, call.shared.epoch())))
}

fn info<'a>(cluster: &Cluster, node: &'a Node, epoch: ClockStart) -> NodeInfo<'a> {
    let health = word(cluster.health_state(&EntityKey::Node(node.name.clone())));
    NodeInfo::new(node, health, cluster.now(), epoch)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct DeactivationBody {
    deactivation_intent: String,
}

fn deactivate(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: DeactivationBody = call.json()?;
    let intent = DeactivationIntent::from_word(&wanted.deactivation_intent).ok_or_else(|| {
        ApiError::invalid(format!(
            "DeactivationIntent is `{}`, but must be Pause, Restart, RemoveData or RemoveNode",
            wanted.deactivation_intent
        ))
    })?;
    let node = call.node();
    call.cluster.deactivate_node(&node, intent)?;
    Ok(Answer::done())
}

fn activate(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let node = call.node();
    call.cluster.activate_node(&node)?;
    Ok(Answer::done())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, expecting = "an object")]
struct RestartBody {
    node_instance_id: Wide,
}

fn restart(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: RestartBody = call.json_or_nothing()?.unwrap_or_default();
    let node = call.node();
    call.cluster
        .restart_node(&node, wanted.node_instance_id.0)?;
    Ok(Answer::done())
}
