//! The file that describes a cluster: TOML or JSON, short enough to be written by hand.
//!
//! Everything has a default. This is a cluster of five nodes with one stateless service on three of them:
//!
//! ```
//! use servicefabric_emulator::topology::Topology;
//!
//! let topology = Topology::from_toml(r#"
//!     [[application_types]]
//!     name = "ShopType"
//!
//!     [application_types.service_types.WebType]
//!     labels = { "YARP.Enable" = true, "YARP.Routes.web.Path" = "/{**catch-all}" }
//!
//!     [applications.Shop]
//!     type = "ShopType"
//!
//!     [applications.Shop.services.Web]
//!     type = "WebType"
//!     instances = 3
//! "#)?;
//! assert_eq!(topology.cluster.nodes.count(), 5);
//! # Ok::<(), servicefabric_emulator::topology::TopologyError>(())
//! ```

mod application;
mod application_type;
mod behaviour;
mod cluster;
mod error;
mod hosting;
mod load;
mod plan;
mod scalar;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use self::application::{
    ApplicationDescription, PartitionsDescription, PropertyDescription, ServiceDescription,
};
pub use self::application_type::{
    ApplicationTypeDescription, CodePackageDescription, EndpointDescription, ManifestDescription,
    ServiceTypeDescription,
};
pub use self::behaviour::{BehaviourDescription, LifeDescription};
pub use self::cluster::{ClusterDescription, NodeDescription, NodesDescription};
pub use self::error::{Problem, TopologyError};
pub(crate) use self::plan::Plan;
pub use self::scalar::Scalar;

/// The description of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Topology {
    /// The cluster itself, and its nodes.
    pub cluster: ClusterDescription,
    /// The settings of hosting by their names in a cluster manifest, such as
    /// `ActivationRetryBackoffInterval`; lengths of time as `"10s"` or a number of seconds.
    pub hosting: IndexMap<String, Scalar>,
    /// The application types that can be deployed.
    pub application_types: Vec<ApplicationTypeDescription>,
    /// The deployed applications, by name: `Shop` stands for `fabric:/Shop`.
    pub applications: IndexMap<String, ApplicationDescription>,
    /// The scripted behaviour of packages on nodes.
    pub behaviours: Vec<BehaviourDescription>,
}
