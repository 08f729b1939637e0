//! What services ask for in their annotations, read once and typed.

mod access;
mod error;
mod intent;
pub mod keys;
mod ports;
mod probes;
mod text;

pub use self::access::Access;
pub use self::error::AnnotationError;
pub use self::intent::{Intent, Mode};
pub use self::ports::{PortIntent, Protocol};
pub use self::probes::ProbeIntent;
use crate::service::Service;

/// Whether a service is to be reachable from the virtual network only: exactly `true` is internal.
pub fn is_internal(service: &Service) -> bool {
    text::is_true(service, keys::INTERNAL)
}

/// The resource group of the service's public address, if it names one.
pub fn resource_group(service: &Service) -> Option<&str> {
    text::filled(service, keys::RESOURCE_GROUP)
}
