//! The responses of an in-memory cluster.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::FakeCluster;
use crate::calls::{CallError, CallErrorKind, ClusterCalls, HealthEntity, ServiceReplicas};
use crate::model::{
    Application, ApplicationType, HealthInformation, Partition, PartitionInformation, Property,
    Replica, ResolvedPartition, Service, ServiceType,
};

#[async_trait]
impl ClusterCalls for FakeCluster {
    async fn application_types(&self) -> Result<Vec<ApplicationType>, CallError> {
        self.called("application_types", &[]).await?;
        let types = self.state().contents.application_types.clone();
        Ok(self.ordered(types))
    }

    async fn applications(&self) -> Result<Vec<Application>, CallError> {
        self.called("applications", &[]).await?;
        let applications = self.state().contents.applications.clone();
        Ok(self.ordered(applications))
    }

    async fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<ServiceType>, CallError> {
        self.called("service_types", &[application_type, version])
            .await?;
        let key = (application_type.to_owned(), version.to_owned());
        let types = self.state().contents.service_types.get(&key).cloned();
        Ok(self.ordered(types.ok_or_else(|| gone("service_types"))?))
    }

    async fn service_manifest(
        &self,
        application_type: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, CallError> {
        self.called("service_manifest", &[application_type, version, manifest])
            .await?;
        let text = self.state().contents.manifests.get(manifest).cloned();
        text.ok_or_else(|| gone("service_manifest"))
    }

    async fn services(&self, application_id: &str) -> Result<Vec<Service>, CallError> {
        self.called("services", &[application_id]).await?;
        let services = self.found(application_id, |state| &state.contents.services);
        services.ok_or_else(|| gone("services"))
    }

    async fn partitions(&self, service_id: &str) -> Result<Vec<Partition>, CallError> {
        self.called("partitions", &[service_id]).await?;
        let partitions = self.found(service_id, |state| &state.contents.partitions);
        partitions.ok_or_else(|| gone("partitions"))
    }

    async fn replicas(&self, partition_id: &str) -> Result<Vec<Replica>, CallError> {
        self.called("replicas", &[partition_id]).await?;
        let replicas = self.found(partition_id, |state| &state.contents.replicas);
        replicas.ok_or_else(|| gone("replicas"))
    }

    async fn resolve(
        &self,
        _: &str,
        partition: &PartitionInformation,
        previous: Option<&str>,
    ) -> Result<ResolvedPartition, CallError> {
        self.called("resolve", &[&partition.id, previous.unwrap_or("-")])
            .await?;
        let mut state = self.state();
        if let Some(old) = state.old_names.get(&partition.id) {
            if previous != Some(&old.version) {
                return Ok(old.clone());
            }
            state.old_names.remove(&partition.id);
        }
        let mut named = state.contents.named();
        let answer = named.remove(&partition.id).ok_or_else(|| gone("resolve"))?;
        Ok(ResolvedPartition {
            partition_information: partition.clone(),
            ..answer
        })
    }

    async fn properties(&self, name_id: &str) -> Result<Vec<Property>, CallError> {
        self.called("properties", &[name_id]).await?;
        let properties = self.found(name_id, |state| &state.contents.properties);
        properties.ok_or_else(|| gone("properties"))
    }

    async fn replica_ids(&self) -> Result<Vec<ServiceReplicas>, CallError> {
        self.called("replica_ids", &[]).await?;
        let state = self.state();
        if state.blind {
            return Ok(Vec::new());
        }
        let contents = &state.contents;
        let services = contents.services.values().flatten().map(|service| {
            let partitions = contents.partitions.get(&service.id).into_iter().flatten();
            let partitions = partitions.map(|partition| {
                let id = &partition.partition_information.id;
                let replicas = contents.replicas.get(id).into_iter().flatten();
                let ids = replicas.map(|replica| replica.replica_id).collect();
                (id.clone(), ids)
            });
            ServiceReplicas::new(service.name.as_str(), partitions.collect())
        });
        Ok(services.collect())
    }

    async fn report_health(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
    ) -> Result<(), CallError> {
        self.called("report_health", &[&entity.to_string()]).await?;
        let report = (entity.clone(), health.clone(), immediate);
        self.state().reports.push(report);
        Ok(())
    }
}

impl FakeCluster {
    fn found<T: Clone>(
        &self,
        id: &str,
        lists: impl FnOnce(&super::FakeState) -> &BTreeMap<String, Vec<T>>,
    ) -> Option<Vec<T>> {
        let list = lists(&self.state()).get(id).cloned();
        list.map(|list| self.ordered(list))
    }
}

fn gone(call: &str) -> CallError {
    CallError::new(CallErrorKind::Gone, call, "there is no such thing").with_status(404)
}
