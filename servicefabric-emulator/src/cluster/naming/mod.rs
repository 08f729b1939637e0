//! The naming service: names, properties, and addresses of partitions.

mod batch;
mod property;
mod resolve;
mod resolved;
mod store;
#[cfg(test)]
mod tests;

pub use self::property::{
    BatchOutcome, Property, PropertyOperation, PropertyResult, PropertyValue, SubNames,
};
pub(super) use self::resolve::ResolveCache;
pub use self::resolved::{EndpointKind, ResolvedEndpoint, ResolvedPartition};
pub(super) use self::store::NameStore;
