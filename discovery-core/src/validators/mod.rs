//! Validators for rules of the operator about services that other teams register.
//!
//! The rules of the model itself are checked for every service and for the merged configuration, before any validator.

mod host_ownership;
mod networks;

pub use self::host_ownership::HostOwnership;
pub use self::networks::AllowedNetworks;
