//! Scripted sources, for tests of programs that use this crate.
//!
//! With tokio's paused time (`#[tokio::test(start_paused = true)]`) everything here is deterministic.

mod discoverer;
#[cfg(feature = "dns")]
mod lookup;

pub use self::discoverer::ScriptedDiscoverer;
#[cfg(feature = "dns")]
pub use self::lookup::ScriptedLookup;
