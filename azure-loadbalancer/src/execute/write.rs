//! The execution of a single action.

use serde::Serialize;
use serde_json::{Value, json};

use crate::arm::{ArmClient, ArmError, Precondition};
use crate::plan::Operation;
use crate::resources::{ArmId, Resource};

/// Carries out an operation, and waits for its completion.
///
/// A resource is overwritten only if it is unchanged since it was read, and created only if it does not exist
/// yet.
pub(super) async fn write(client: &ArmClient, operation: &Operation) -> Result<(), ArmError> {
    match operation {
        Operation::PutPublicIp { resource, if_match } => {
            put(client, resource, if_match.as_deref(), true).await
        }
        Operation::PutLoadBalancer { resource, if_match } => {
            put(client, resource, if_match.as_deref(), true).await
        }
        Operation::PutSecurityGroup { resource, if_match } => {
            put(client, resource, if_match.as_deref(), false).await
        }
        Operation::PutNetworkInterface { resource, if_match } => {
            put(client, resource, if_match.as_deref(), false).await
        }
        Operation::PutPool { resource, if_match } => {
            put(client, resource, if_match.as_deref(), false).await
        }
        Operation::PutScaleSet { resource, if_match } => {
            put(client, resource, if_match.as_deref(), false).await
        }
        Operation::DeletePublicIp { id, if_match }
        | Operation::DeleteLoadBalancer { id, if_match } => {
            let etag = if_match.as_deref();
            client
                .delete(id, etag.map_or(Precondition::None, Precondition::Matches))
                .await
        }
        Operation::UpgradeScaleSetInstances { id, instance_ids } => {
            client
                .post(id, "manualupgrade", &json!({ "instanceIds": instance_ids }))
                .await
        }
    }
}

async fn put<P: Serialize>(
    client: &ArmClient,
    resource: &Resource<P>,
    if_match: Option<&str>,
    may_be_new: bool,
) -> Result<(), ArmError> {
    let nowhere = ArmId::default();
    // The client rejects an empty path with an error that names the call.
    let id = resource.id.as_ref().unwrap_or(&nowhere);
    let precondition = match if_match {
        Some(etag) => Precondition::Matches(etag),
        None if may_be_new => Precondition::IsNew,
        None => Precondition::None,
    };
    client
        .put::<Value>(id, resource, precondition)
        .await
        .map(drop)
}
