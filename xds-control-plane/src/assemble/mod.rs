//! The assembly of all services' resources into one [`Snapshot`](crate::snapshot::Snapshot).
//!
//! ```text
//! ServiceResources of each service ─▶ validated ─▶ encoded ─▶ who has which name and domain ─▶ Snapshot
//!                                        │                              │
//!                                        ▼                              ▼
//!                             quarantined, with reasons              warnings
//! ```
//!
//! No resource that Envoy would reject is sent: it would reject all others with it. The name of a cluster
//! or a listener, a domain ignoring case, and a listening address exist only once. Each goes to the source
//! that comes first in [`ResourceOptions::precedence`], and within a source to the service whose name comes
//! first.

mod accepted;
mod builder;
mod canonical;
mod claims;
mod config_source;
mod encode;
mod lost;
mod options;
#[cfg(test)]
pub(crate) mod oracle;
mod outcome;
mod services;
mod shapes;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod unknown;
mod validate;

pub use self::builder::{ResourceBuilder, assemble};
pub(crate) use self::canonical::encode;
pub(crate) use self::lost::{targets, without};
pub use self::options::ResourceOptions;
pub use self::outcome::{BuiltResources, Quarantined, Reason, Warning};
pub use self::services::{Owner, ServiceResources};
pub use self::unknown::UnknownZones;
pub(crate) use self::validate::re2_size;
