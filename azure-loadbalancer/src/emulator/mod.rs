//! Azure's resource manager in memory, to develop and test against: load balancers, public addresses,
//! security groups, virtual networks, network interfaces, virtual machines and scale sets.
//!
//! It checks what Azure checks: ids must lead somewhere, resources in use are not deleted, limits are kept.
//! It has etags, asynchronous operations, pages, defaults, allocated addresses, and ids in random letter
//! case. It knows the references between resources, logs the requests, and injects faults.
//!
//! [`Machine`] is the state, without I/O and without a clock. [`Emulator`] shares it, and is a `tower`
//! service for clients in the same process. [`EmulatorServer`] puts it behind a socket for the clients of
//! Azure's own SDKs.
//!
//! ```
//! use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
//! use serde_json::json;
//!
//! let emulator = Emulator::new(EmulatorOptions::default());
//! let address = emulator.with(|machine| {
//!     machine.add_group("s", "rg", "westus");
//!     let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/a";
//!     machine.put(id, json!({ "location": "westus", "properties": { "publicIPAllocationMethod": "Static" } }))
//! });
//! assert_eq!(address.unwrap()["properties"]["ipAddress"], "20.0.0.1");
//! ```

mod answer;
mod casing;
mod control;
mod fault;
mod handle;
mod identity;
mod inside;
mod json;
mod kinds;
mod log;
mod machine;
mod operation;
mod options;
mod page;
mod path;
mod references;
mod rejection;
mod resource_calls;
mod restore;
mod server;
mod store;

pub use self::fault::{Fault, FaultAction};
pub use self::handle::{Emulator, Lost};
pub use self::log::{LoggedRequest, RequestClass, RequestCounts};
pub use self::machine::Machine;
pub use self::options::EmulatorOptions;
pub use self::rejection::Rejection;
pub use self::server::EmulatorServer;
