//! The REST gateway and the emulator around it: a cluster that runs with a clock and responds like a real
//! one.
//!
//! [`Emulator`] is the entry point. The calls are those of a Service Fabric gateway, so that `sfctl` and the
//! SDKs work. The emulator's own API is below `/emulator` (time, faults, crashes; the README has a table).

mod admin;
mod calls;
mod emulator;
mod faults;
mod route;
mod security;
mod server;
mod shapes;
mod wire;

pub use self::emulator::{
    BoxFuture, Builder, Dialect, Emulator, Endpoints, Responder, StartError, Time, Workload,
};
pub use self::faults::{Fault, FaultAction, FaultError, Faults};
pub use self::security::{AadMetadata, Role};
#[cfg(feature = "tls")]
pub use self::security::{TlsError, TlsOptions};
