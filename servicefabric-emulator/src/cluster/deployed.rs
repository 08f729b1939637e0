//! Queries for deployed applications, packages, service types and replicas of a node.

use super::entity::{DeployedApplication, DeployedReplica};
use super::error::FabricError;
use super::failover::replica_ref;
use super::name::FabricName;
use super::nodes::no_node;
use super::page::{Page, PageRequest};
use super::state::{Cluster, NodeEntry};
use crate::hosting::{self, DeployedCodePackage, DeployedPackage, DeployedServiceType};

/// All of these fail with `FABRIC_E_NODE_NOT_FOUND` for an unknown node. A list about an application that is
/// not on the node is empty.
impl Cluster {
    /// The applications on a node, by name.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deployed_applications(
        &self,
        node: &str,
        page: &PageRequest,
    ) -> Result<Page<DeployedApplication>, FabricError> {
        let deployed = self.entry(node)?.host.applications();
        let behind = deployed
            .iter()
            .filter(|found| page.lower_bound().is_none_or(|bound| *found.name > *bound));
        let described = behind.filter_map(|found| self.describe(node, found));
        Ok(Page::take(described, page, |found| found.name.to_string()))
    }

    /// Returns an application on a node. `None` if it is not deployed there.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deployed_application(
        &self,
        node: &str,
        application: &FabricName,
    ) -> Result<Option<DeployedApplication>, FabricError> {
        let deployed = self.entry(node)?.host.applications();
        let found = deployed
            .iter()
            .find(|found| *found.name == *application.as_str());
        Ok(found.and_then(|found| self.describe(node, found)))
    }

    fn describe(
        &self,
        node: &str,
        deployed: &hosting::DeployedApplication,
    ) -> Option<DeployedApplication> {
        let application = self.applications.get(&*deployed.name)?;
        Some(DeployedApplication {
            name: application.name.clone(),
            type_name: application.type_name.clone(),
            type_version: self.version_on(node, &application.name)?,
            status: deployed.status,
        })
    }

    /// The service packages of an application on a node.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deployed_packages(
        &self,
        node: &str,
        application: &FabricName,
    ) -> Result<Vec<DeployedPackage>, FabricError> {
        Ok(self.entry(node)?.host.packages(application.as_str()))
    }

    /// The code packages of an application on a node.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deployed_code_packages(
        &self,
        node: &str,
        application: &FabricName,
    ) -> Result<Vec<DeployedCodePackage>, FabricError> {
        Ok(self.entry(node)?.host.code_packages(application.as_str()))
    }

    /// The service types of an application on a node.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deployed_service_types(
        &self,
        node: &str,
        application: &FabricName,
    ) -> Result<Vec<DeployedServiceType>, FabricError> {
        Ok(self.entry(node)?.host.service_types(application.as_str()))
    }

    /// The replicas of an application on a node.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub fn deployed_replicas(
        &self,
        node: &str,
        application: &FabricName,
    ) -> Result<Vec<DeployedReplica>, FabricError> {
        let hosted = self.entry(node)?.host.replicas();
        let hosted = hosted
            .into_iter()
            .filter(|found| *found.placement.package.application == *application.as_str());
        let described = hosted.filter_map(|found| {
            let replica = self.replica(replica_ref(&found.placement.replica)?)?;
            let service = self
                .services
                .get(&self.partitions.get(&replica.key.partition)?.service)?;
            Some(DeployedReplica {
                key: replica.key,
                kind: service.kind,
                service: service.name.clone(),
                service_type: service.type_name.clone(),
                manifest_name: service.manifest_name.clone(),
                code_package: found.code_package.as_deref().unwrap_or_default().to_owned(),
                replica: replica.clone(),
                process_id: found.process_id,
            })
        });
        Ok(described.collect())
    }

    fn entry(&self, node: &str) -> Result<&NodeEntry, FabricError> {
        self.nodes.get(node).ok_or_else(|| no_node(node))
    }
}
