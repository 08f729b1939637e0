//! The compiled form of a configuration: everything is parsed, has its defaults, and is valid.
//!
//! Only [`Snapshot`](crate::Snapshot) makes these values, so code that holds one need not check it.

mod affinity;
mod cluster;
mod destination;
mod partitions;
mod policies;
mod reply;
mod route;
mod source;
mod tls_files;
mod web_proxy;

pub(crate) use self::affinity::CookieSecure;
pub use self::affinity::{
    AffinityCookie, AffinityFailure, AffinityKey, CookieSameSite, SessionAffinity,
};
pub use self::cluster::{
    ActiveCheck, AgentCheck, AvailabilityPolicy, BalancingPolicy, Cluster, ClusterIndex,
    PassiveCheck, ProbeKind, Upstream,
};
pub use self::destination::{Destination, DestinationAddress, DestinationIndex, Scheme};
pub use self::partitions::{
    KeyRejection, PartitionKeySource, PartitionKeys, PartitionTarget, Partitions,
};
pub use self::policies::ChosenPolicy;
pub use self::reply::{FixedResponse, Redirect, RedirectError};
pub use self::route::{BodyLimit, Route, RouteIndex, RouteTarget, WeightedTarget};
pub(crate) use self::source::{ClusterSource, DestinationSource, RouteSource};
pub use self::tls_files::TlsFiles;
pub(crate) use self::web_proxy::BypassPattern;
pub use self::web_proxy::WebProxy;
