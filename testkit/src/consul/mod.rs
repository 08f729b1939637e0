//! Agents of HashiCorp Consul as separate processes on loopback: servers in development mode, each
//! of which is a datacenter and keeps its state in memory.
//!
//! The program `consul` is found like every [peer](crate::peers). Each agent has its own loopback
//! address with Consul's usual ports, so tests may run in parallel. It makes no outgoing
//! connections, and is killed on drop. If the test fails, the last lines of its log are shown.
//!
//! ```
//! use testkit::consul::Consul;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let Some(consul) = Consul::find() else { return };
//!
//! let sas = consul.datacenter("sas").start().await;
//! let vla = consul.datacenter("vla").join(&sas).start().await;
//! sas.wait_for_datacenter("vla").await;
//! assert_eq!(vla.call("PUT", "/v1/kv/a?dc=sas", "1").await.status, 200);
//! assert_eq!(sas.call("GET", "/v1/kv/a?raw", "").await.body, "1");
//! # }
//! ```

mod agent;
mod builder;
#[cfg(test)]
mod tests;

pub use self::agent::{ConsulAgent, ConsulAnswer};
pub use self::builder::ConsulAgentBuilder;
use crate::peers::{self, Peer};

/// The program `consul`.
#[derive(Clone, Debug)]
pub struct Consul {
    program: Peer,
}

impl Consul {
    /// Finds the program. `None`, with a message, if it is missing.
    ///
    /// # Panics
    ///
    /// Panics if it is missing and `REQUIRE_PEERS` is 1.
    #[track_caller]
    pub fn find() -> Option<Self> {
        let program = peers::find("consul")?;
        Some(Self { program })
    }

    /// Returns a builder for the agent of a datacenter.
    pub fn datacenter(&self, name: impl Into<String>) -> ConsulAgentBuilder {
        ConsulAgentBuilder::new(self.program.clone(), name.into())
    }
}
