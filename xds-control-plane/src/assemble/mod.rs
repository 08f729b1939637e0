//! The assembly of all services' resources into one [`Snapshot`](crate::snapshot::Snapshot).
//!
//! ```text
//! ServiceResources of each service ─▶ validated ─▶ encoded ─▶ who has which name and domain ─▶ Snapshot
//!                                        │                              │
//!                                        ▼                              ▼
//!                             quarantined, with reasons              warnings
//! ```
//!
//! Nothing that Envoy would refuse gets out: it would refuse everything else with it. What cannot be had twice (the name of a
//! cluster or a listener, a domain in any case, an address that is listened on) is had by the source that comes first in
//! [`AssembleOptions::precedence`], and within a source by the service whose name comes first.

mod accepted;
mod assembler;
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

pub use self::assembler::{Assembler, assemble};
pub(crate) use self::canonical::encode;
pub(crate) use self::lost::{targets, without};
pub use self::options::AssembleOptions;
pub use self::outcome::{Assembled, Quarantined, Reason, Warning};
pub use self::services::{Owner, ServiceResources};
pub use self::unknown::UnknownZones;
pub(crate) use self::validate::re2_size;
