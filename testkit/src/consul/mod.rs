//! Real agents of HashiCorp Consul, each a process of its own on loopback: a server in development mode, which is a
//! datacenter on its own and keeps everything in memory.
//!
//! The program `consul` is looked for as every [peer](crate::peers) is. Each agent has a loopback address of its own, where
//! it has Consul's usual ports, so tests may run side by side; it phones nobody, and is killed when it is dropped. If the
//! test fails, the last lines of its log are shown.
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
    /// Looks for the program; `None`, loudly, when it is missing.
    ///
    /// # Panics
    ///
    /// When it is missing and `REQUIRE_PEERS` is 1.
    #[track_caller]
    pub fn find() -> Option<Self> {
        let program = peers::find("consul")?;
        Some(Self { program })
    }

    /// Describes the agent of a datacenter.
    pub fn datacenter(&self, name: impl Into<String>) -> ConsulAgentBuilder {
        ConsulAgentBuilder::new(self.program.clone(), name.into())
    }
}
