use serde::Serialize;

use crate::cluster::ServiceKind;
use crate::gateway::wire::text;
use crate::health::EntityKey;

/// The identity of an entity in a response.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Identity {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_manifest_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_package_activation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_or_instance_id: Option<String>,
}

/// A function that returns the service kind of a replica, which only the cluster knows.
pub(crate) type KindOf<'a> = &'a dyn Fn(&EntityKey) -> Option<ServiceKind>;

impl Identity {
    /// Returns the identity at the top of a response.
    pub(super) fn of(key: &EntityKey, kind_of: KindOf<'_>) -> Self {
        match key {
            EntityKey::Cluster => Self::default(),
            EntityKey::Node(name) => Self::named(name),
            EntityKey::Application(name) | EntityKey::Service(name) => Self::named(name.as_str()),
            EntityKey::Partition(id) => Self {
                partition_id: Some(text(id)),
                ..Self::default()
            },
            EntityKey::Replica(replica) => {
                let kind = kind_of(key);
                let id = text(replica.replica);
                let (replica_id, instance_id) = match kind {
                    Some(ServiceKind::Stateful) => (Some(id), None),
                    Some(ServiceKind::Stateless) | None => (None, Some(id)),
                };
                Self {
                    partition_id: Some(text(replica.partition)),
                    service_kind: kind.map(ServiceKind::as_str),
                    replica_id,
                    instance_id,
                    ..Self::default()
                }
            }
            EntityKey::DeployedApplication { application, node } => Self {
                node_name: Some(text(node)),
                name: Some(text(application)),
                ..Self::default()
            },
            EntityKey::DeployedServicePackage { package, node } => Self {
                node_name: Some(text(node)),
                application_name: Some(text(&package.application)),
                service_manifest_name: Some(text(&package.manifest)),
                ..Self::default()
            },
        }
    }

    /// Returns the identity in a list of children.
    pub(super) fn of_child(key: &EntityKey, kind_of: KindOf<'_>) -> Self {
        match key {
            EntityKey::Service(name) => Self {
                service_name: Some(text(name)),
                ..Self::default()
            },
            EntityKey::DeployedApplication { application, node } => Self {
                node_name: Some(text(node)),
                application_name: Some(text(application)),
                ..Self::default()
            },
            EntityKey::DeployedServicePackage { package, .. } => Self {
                service_package_activation_id: Some(text(&package.activation_id)),
                ..Self::of(key, kind_of)
            },
            // The list uses one name for both kinds of ids.
            EntityKey::Replica(replica) => Self {
                partition_id: Some(text(replica.partition)),
                service_kind: kind_of(key).map(ServiceKind::as_str),
                replica_id: Some(text(replica.replica)),
                ..Self::default()
            },
            _ => Self::of(key, kind_of),
        }
    }

    /// Returns the identity in an evaluation.
    pub(super) fn of_unhealthy(key: &EntityKey, kind_of: KindOf<'_>) -> Self {
        match key {
            EntityKey::Node(name) => Self {
                node_name: Some(text(name)),
                ..Self::default()
            },
            EntityKey::Application(name) => Self {
                application_name: Some(text(name)),
                ..Self::default()
            },
            EntityKey::Replica(replica) => Self {
                partition_id: Some(text(replica.partition)),
                replica_or_instance_id: Some(text(replica.replica)),
                ..Self::default()
            },
            EntityKey::DeployedServicePackage { .. } => Self::of(key, kind_of),
            _ => Self::of_child(key, kind_of),
        }
    }

    fn named(name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..Self::default()
        }
    }
}
