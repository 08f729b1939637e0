//! The calls of discovery.

use async_trait::async_trait;
use serde::Deserialize;
use tokio::time::Instant;

use super::Client;
use super::request::{Call, Safety};
use crate::calls::{CallError, CallErrorKind, ClusterCalls, HealthEntity, ServiceReplicas};
use crate::model::{
    Application, ApplicationType, ClusterHealthChunk, HealthInformation, Partition,
    PartitionInformation, PartitionKind, Property, Replica, ReplicaStatus, ResolvedPartition,
    Service, ServiceType,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest {
    manifest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    version: String,
}

impl Client {
    /// Returns the version of the cluster's runtime, such as `9.1.1833.9590`: a cheap check that an
    /// endpoint is a working gateway.
    ///
    /// # Errors
    ///
    /// The errors of every call.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn cluster_version(&self) -> Result<String, CallError> {
        let call = Call::get("6.4").at("/$/GetClusterVersion");
        let Version { version } = self.shared.read(&call, self.deadline()).await?;
        Ok(version)
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.shared.options.budget
    }
}

#[async_trait]
impl ClusterCalls for Client {
    async fn application_types(&self) -> Result<Vec<ApplicationType>, CallError> {
        let call = Call::get("6.0").at("/ApplicationTypes");
        let lacks = |of: &ApplicationType| {
            let members = [("Name", &of.name), ("Version", &of.version)];
            let mut lacking = members.into_iter().filter(|(_, text)| text.is_empty());
            lacking.next().map(|(member, _)| member)
        };
        self.shared.whole_list(call, lacks).await
    }

    async fn applications(&self) -> Result<Vec<Application>, CallError> {
        let call = Call::get("6.1").at("/Applications");
        let lacks = |of: &Application| of.name.is_empty().then_some("Name");
        self.shared.whole_list(call, lacks).await
    }

    async fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<ServiceType>, CallError> {
        let call = Call::get("6.0")
            .at("/ApplicationTypes")
            .name(application_type)
            .at("/$/GetServiceTypes")
            .argument("ApplicationTypeVersion", version)
            .of_list();
        let lacks = |of: &ServiceType| {
            let description = &of.service_type_description;
            if description.service_type_name.is_empty() {
                return Some("ServiceTypeDescription.ServiceTypeName");
            }
            let mut extensions = description.extensions.iter().flatten();
            let is_nameless = extensions.any(|extension| extension.key.is_empty());
            is_nameless.then_some("ServiceTypeDescription.Extensions.Key")
        };
        self.shared.whole_list(call, lacks).await
    }

    async fn service_manifest(
        &self,
        application_type: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, CallError> {
        let call = Call::get("6.0")
            .at("/ApplicationTypes")
            .name(application_type)
            .at("/$/GetServiceManifest")
            .argument("ApplicationTypeVersion", version)
            .argument("ServiceManifestName", manifest);
        let Manifest { manifest } = self.shared.read(&call, self.deadline()).await?;
        Ok(manifest)
    }

    async fn services(&self, application_id: &str) -> Result<Vec<Service>, CallError> {
        let call = Call::get("6.0")
            .at("/Applications")
            .id(application_id)
            .at("/$/GetServices")
            .of_list();
        let lacks = |of: &Service| match (of.name.is_empty(), of.type_name.is_empty()) {
            (true, _) => Some("Name"),
            // A service of no known type would be removed.
            (false, true) => Some("TypeName"),
            (false, false) => None,
        };
        let services = self.shared.whole_list(call.clone(), lacks).await?;
        // A list of another application would count as the removal of all services.
        let foreign = services
            .iter()
            .find(|service| !is_of(&service.name, application_id));
        match foreign {
            None => Ok(services),
            Some(service) => {
                let name = discovery_core::text::shortened(&service.name, 100);
                let message = format!("the list has `{name}`, which is of another application");
                Err(call.error(CallErrorKind::Malformed, message))
            }
        }
    }

    async fn partitions(&self, service_id: &str) -> Result<Vec<Partition>, CallError> {
        let call = Call::get("6.4")
            .at("/Services")
            .id(service_id)
            .at("/$/GetPartitions")
            .of_list();
        let lacks = |of: &Partition| {
            let is_nameless = of.partition_information.id.is_empty();
            is_nameless.then_some("PartitionInformation.Id")
        };
        self.shared.whole_list(call, lacks).await
    }

    async fn replicas(&self, partition_id: &str) -> Result<Vec<Replica>, CallError> {
        let call = Call::get("6.0")
            .at("/Partitions")
            .id(partition_id)
            .at("/$/GetReplicas")
            .of_list();
        let lacks = |of: &Replica| {
            match of.replica_status {
                ReplicaStatus::Invalid => Some("ReplicaStatus"),
                // Several without an id would be one destination.
                ReplicaStatus::Ready if of.replica_id == 0 => Some("ReplicaId"),
                _ => None,
            }
        };
        self.shared.whole_list(call, lacks).await
    }

    async fn resolve(
        &self,
        service_id: &str,
        partition: &PartitionInformation,
        previous: Option<&str>,
    ) -> Result<ResolvedPartition, CallError> {
        let mut call = Call::get("6.0")
            .at("/Services")
            .id(service_id)
            .at("/$/ResolvePartition");
        call = match (
            &partition.service_partition_kind,
            partition.low_key,
            &partition.name,
        ) {
            // 1, no key, is what the gateway takes for granted.
            (PartitionKind::Singleton, _, _) => call,
            (PartitionKind::Int64Range, Some(low), _) => call
                .argument("PartitionKeyType", "2")
                .argument("PartitionKeyValue", &low.to_string()),
            (PartitionKind::Named, _, Some(name)) => call
                .argument("PartitionKeyType", "3")
                .argument("PartitionKeyValue", name),
            _ => call.impossible("the partition has no key to resolve it by"),
        };
        if let Some(previous) = previous {
            call = call.argument("PreviousRspVersion", previous);
        }
        self.shared.read(&call, self.deadline()).await
    }

    async fn properties(&self, name_id: &str) -> Result<Vec<Property>, CallError> {
        let call = Call::get("6.0")
            .at("/Names")
            .id(name_id)
            .at("/$/GetProperties")
            .argument("IncludeValues", "true")
            .of_list();
        let lacks = |of: &Property| of.name.is_empty().then_some("Name");
        self.shared.whole_list(call, lacks).await
    }

    async fn replica_ids(&self) -> Result<Vec<ServiceReplicas>, CallError> {
        // A read, in spite of its method: its query does not fit into a URL.
        let call = Call::post("6.0", Safety::Reads, ClusterHealthChunk::QUERY)
            .at("/$/GetClusterHealthChunk");
        let chunk: ClusterHealthChunk = self.shared.read(&call, self.deadline()).await?;
        chunk.replica_ids().ok_or_else(|| {
            let message = "the answer leaves replicas out: the cluster is too large for one answer";
            call.error(CallErrorKind::Malformed, message)
        })
    }

    async fn report_health(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
    ) -> Result<(), CallError> {
        self.shared.report(entity, health, immediate).await
    }
}

/// Returns true if a service may belong to an application. In ids, `~` stands for `/`.
fn is_of(service: &str, application_id: &str) -> bool {
    let plain = |text: &str| text.replace('~', "/").to_ascii_lowercase();
    let service = plain(service);
    // Names in another form reveal nothing.
    service.strip_prefix("fabric:/").is_none_or(|path| {
        let rest = path.strip_prefix(&*plain(application_id));
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn services_are_told_from_those_of_other_applications() {
        for (service, application, expected) in [
            ("fabric:/Shop/Web", "Shop", true),
            ("fabric:/shop/Web", "Shop", true),
            ("fabric:/Shop/Parts/Web", "Shop", true),
            ("fabric:/Shop/Parts/Web", "Shop~Parts", true),
            ("fabric:/my~app/Web", "my~app", true),
            ("fabric:/System/ClusterManagerService", "System", true),
            ("fabric:/Oth/A", "Shop", false),
            ("fabric:/Shopping/A", "Shop", false),
            ("fabric:/Shop", "Shop", false),
            ("Shop/Web", "Shop", true),
        ] {
            assert_eq!(
                is_of(service, application),
                expected,
                "{service} {application}"
            );
        }
    }
}
