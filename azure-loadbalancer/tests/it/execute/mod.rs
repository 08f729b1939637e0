//! Execution of plans on the emulator: convergence, crashes, other writers, faults, and cost. In virtual
//! time.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod conflicts;
mod cost;
mod crashes;
mod following;
mod groups;
mod invariants;
mod neighbours;
mod provider;
mod rejections;
mod remembered;
mod rounds;
mod scenario;
mod steps;
mod uids;
mod world;
