//! Agents of HashiCorp Serf as separate processes on loopback.
//!
//! The program `serf` is found like every [peer](crate::peers). Each agent has its own ports, and
//! on Linux its own loopback address, so tests may run in parallel. It gossips with the timing of
//! Serf's profile `local`, and is killed on drop. If the test fails, the last lines of its log are
//! shown.
//!
//! Methods here use Serf's own command line, independent of the RPC client under test.
//!
//! ```
//! use testkit::serf::Serf;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let Some(serf) = Serf::find() else { return };
//!
//! let gateway = serf.agent("gateway").start().await;
//! let mut orders = serf.agent("orders-1").join(&gateway).tag("service", "orders").start().await;
//! gateway.wait_for("orders-1", "alive").await;
//!
//! orders.set_tag("weight", "5").await;
//! assert_eq!(orders.own_tags().await["weight"], "5");
//!
//! orders.leave().await;
//! gateway.wait_for("orders-1", "left").await;
//! # }
//! ```

mod agent;
mod builder;
mod command_line;
mod place;
mod ready;

#[cfg(test)]
mod tests;

pub use self::agent::SerfAgent;
pub use self::builder::SerfAgentBuilder;
pub use self::command_line::ListedMember;
pub(crate) use self::place::own_loopback;
use crate::peers::{self, Peer};

/// The program `serf`.
#[derive(Clone, Debug)]
pub struct Serf {
    program: Peer,
}

impl Serf {
    /// Finds the program. `None`, with a message, if it is missing.
    ///
    /// # Panics
    ///
    /// Panics if it is missing and `REQUIRE_PEERS` is 1.
    #[track_caller]
    pub fn find() -> Option<Self> {
        let program = peers::find("serf")?;
        Some(Self { program })
    }

    /// Returns a builder for an agent. Its name must be unique in its cluster.
    pub fn agent(&self, name: impl Into<String>) -> SerfAgentBuilder {
        SerfAgentBuilder::new(self.program.clone(), name.into())
    }
}
