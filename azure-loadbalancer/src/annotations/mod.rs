//! The annotations of services: parsed once, and typed.

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

/// Returns true if a service may be reached from the virtual network only: if its annotation is exactly `true`.
pub fn is_internal(service: &Service) -> bool {
    text::is_true(service, keys::INTERNAL)
}

/// Returns the addresses that a service requests, each with its field: in its specification, or in the
/// annotation that has replaced it.
pub(crate) fn asked_addresses(service: &Service) -> impl Iterator<Item = (&'static str, &str)> {
    let specified = service.load_balancer_ip.as_deref().map(str::trim);
    let specified = specified.filter(|value| !value.is_empty());
    let annotated = text::filled(service, keys::IPV4);
    let specified = specified.map(|value| ("spec.loadBalancerIP", value));
    specified
        .into_iter()
        .chain(annotated.map(|value| (keys::IPV4, value)))
}

/// Returns the resource group of the service's public address, if it names one.
pub fn resource_group(service: &Service) -> Option<&str> {
    text::filled(service, keys::RESOURCE_GROUP)
}
