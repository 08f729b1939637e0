//! An xDS client that is a source of configuration: a proxy of this family obeys this control plane or any other.
//!
//! [`XdsDiscoverer`] keeps one aggregated stream (delta or state of the world), walks from listeners and clusters to routes
//! and endpoints, and answers with what is [read](crate::bridge) of them. A resource that cannot be honoured is refused with a
//! NACK that names it, and what it was before serves on. When the control plane is lost, everything serves on; the age of the
//! last confirmation is in the provider's status.

mod connect;
mod discoverer;
mod options;
mod protocol;
mod section;
mod session;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub use self::connect::{ClientError, TlsOptions};
pub use self::discoverer::XdsDiscoverer;
pub use self::options::{Mode, XdsOptions};
pub use self::section::Section;
