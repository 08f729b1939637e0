//! A client of Azure's resource manager (ARM): reads, conditional writes, asynchronous writes, pages, tokens,
//! and gates for throttled calls.
//!
//! ```
//! # #[cfg(feature = "emulator")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use azure_loadbalancer::arm::{ArmClient, Precondition, TowerTransport};
//! use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
//! use azure_loadbalancer::resources::{ArmId, PublicIpAddress};
//! use serde_json::json;
//!
//! let emulator = Emulator::new(EmulatorOptions::default());
//! emulator.with(|machine| machine.add_group("s", "rg", "westus"));
//! let client = ArmClient::builder(TowerTransport::new(emulator)).build()?;
//!
//! let id = ArmId::network("s", "rg", "publicIPAddresses", "a");
//! let body = json!({ "location": "westus", "properties": { "publicIPAllocationMethod": "Static" } });
//! let _: PublicIpAddress = client.put(&id, &body, Precondition::IsNew).await?;
//! let address: Option<PublicIpAddress> = client.get(&id).await?;
//! assert_eq!(address.unwrap().properties.ip_address.as_deref(), Some("20.0.0.1"));
//! assert_eq!(client.counts().writes, 1);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "emulator"))]
//! # fn main() {}
//! ```

mod answer;
mod builder;
mod call;
mod call_log;
mod client;
mod error;
mod operation;
mod options;
#[cfg(feature = "reqwest")]
mod reqwest_transport;
mod throttle;
pub mod token;
mod tower_transport;

pub use self::builder::{ArmClientBuilder, EndpointError, PUBLIC_CLOUD};
pub use self::call::Precondition;
pub use self::call_log::{CallClass, CallCounts, CallRecord};
pub use self::client::ArmClient;
pub use self::error::{ArmError, ArmErrorDetail, ArmErrorKind};
pub use self::options::{ArmOptions, RetryPolicy};
#[cfg(feature = "reqwest")]
pub use self::reqwest_transport::{ReqwestTransport, TransportSetupError};
pub use self::tower_transport::TowerTransport;
pub use discovery_http::{Transport, TransportError, TransportErrorKind};
