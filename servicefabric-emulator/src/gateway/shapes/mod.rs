//! The JSON of entities: the keys of the wire, in their order.
//!
//! Numbers with 64 bits are strings. Keys that only some gateways write are included, since clients ignore
//! unknown keys.

mod application;
mod chunk;
mod deployed;
mod health;
mod image_store;
mod node;
mod partition;
mod property;
mod service;
mod upgrade;
mod wide;

pub(crate) use self::application::{
    ApplicationInfo, ApplicationTypeInfo, Manifest, NameInfo, Parameter, ServiceTypeInfo,
};
pub(crate) use self::chunk::{ChunkQueryBody, ClusterHealthChunkInfo};
pub(crate) use self::deployed::{
    DeployedApplicationInfo, DeployedCodePackageInfo, DeployedReplicaInfo,
    DeployedServicePackageInfo, DeployedServiceTypeInfo,
};
pub(crate) use self::health::{EntityHealthInfo, HealthStyle, word};
pub(crate) use self::image_store::ImageStoreContent;
pub(crate) use self::node::NodeInfo;
pub(crate) use self::partition::{PartitionInfo, ReplicaInfo, ResolvedPartitionInfo};
pub(crate) use self::property::{BatchInfo, OperationBody, PropertyInfo, ValueBody};
pub(crate) use self::service::{ServiceDescriptionInfo, ServiceInfo};
pub(crate) use self::upgrade::UpgradeProgressInfo;
pub(crate) use self::wide::Wide;
