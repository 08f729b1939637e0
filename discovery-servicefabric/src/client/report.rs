//! Health reports.

use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::Shared;
use super::request::{Call, Safety};
use crate::calls::{CallError, HealthEntity};
use crate::model::{HealthInformation, ServiceKind};

impl Shared {
    pub(super) async fn report(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
    ) -> Result<(), CallError> {
        let deadline = Instant::now() + self.options.budget;
        let as_number = self.kinds_as_numbers.load(Ordering::Relaxed);
        let first = self
            .report_once(entity, health, immediate, as_number, deadline)
            .await;
        let Err(error) = first else { return Ok(()) };
        if !(matches!(entity, HealthEntity::Replica { .. }) && is_invalid_argument(&error)) {
            return Err(error);
        }
        // Gateways differ in the format of a service's kind, and report only that an argument is wrong. If
        // the other form is wrong too, the error is about something else, which the first response
        // describes.
        let second = self
            .report_once(entity, health, immediate, !as_number, deadline)
            .await;
        match second {
            Ok(()) => {
                self.kinds_as_numbers.store(!as_number, Ordering::Relaxed);
                Ok(())
            }
            Err(second) if is_invalid_argument(&second) => Err(error),
            Err(second) => Err(second),
        }
    }

    async fn report_once(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
        as_number: bool,
        deadline: Instant,
    ) -> Result<(), CallError> {
        let call = report(entity, health, immediate, as_number);
        self.exchange(&call, deadline).await.map(drop)
    }
}

fn is_invalid_argument(error: &CallError) -> bool {
    error.status() == Some(400) && error.code() == Some("E_INVALIDARG")
}

/// The call that reports.
fn report(
    entity: &HealthEntity,
    health: &HealthInformation,
    immediate: bool,
    as_number: bool,
) -> Call {
    let body = serde_json::to_vec(health).expect("texts and words can always be written as JSON");
    let call = Call::post("6.0", Safety::Writes, body);
    let call = match entity {
        HealthEntity::Cluster => call.at("/$/ReportClusterHealth"),
        HealthEntity::Node { node } => call.at("/Nodes").name(node).at("/$/ReportHealth"),
        HealthEntity::Application { application_id } => call
            .at("/Applications")
            .id(application_id)
            .at("/$/ReportHealth"),
        HealthEntity::DeployedApplication {
            node,
            application_id,
        } => call
            .at("/Nodes")
            .name(node)
            .at("/$/GetApplications")
            .id(application_id)
            .at("/$/ReportHealth"),
        HealthEntity::DeployedServicePackage {
            node,
            application_id,
            service_package,
        } => call
            .at("/Nodes")
            .name(node)
            .at("/$/GetApplications")
            .id(application_id)
            .at("/$/GetServicePackages")
            .name(service_package)
            .at("/$/ReportHealth"),
        HealthEntity::Service { service_id } => {
            call.at("/Services").id(service_id).at("/$/ReportHealth")
        }
        HealthEntity::Partition { partition_id } => call
            .at("/Partitions")
            .id(partition_id)
            .at("/$/ReportHealth"),
        HealthEntity::Replica {
            partition_id,
            replica_id,
            kind,
        } => {
            let call = call
                .at("/Partitions")
                .id(partition_id)
                .at("/$/GetReplicas")
                .name(&replica_id.to_string())
                .at("/$/ReportHealth");
            match (kind, as_number) {
                (ServiceKind::Stateless, false) => call.argument("ServiceKind", "Stateless"),
                (ServiceKind::Stateful, false) => call.argument("ServiceKind", "Stateful"),
                (ServiceKind::Stateless, true) => call.argument("ServiceKind", "1"),
                (ServiceKind::Stateful, true) => call.argument("ServiceKind", "2"),
                _ => call.impossible("it is not known whether the service keeps state"),
            }
        }
    };
    call.argument("Immediate", if immediate { "true" } else { "false" })
}
