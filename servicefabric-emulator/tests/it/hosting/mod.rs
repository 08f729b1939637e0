//! The hosting life cycle from outside: rows of a table, each a short script and its outcome.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod blocklisting;
mod deactivation;
mod formulas;
mod packages;
mod processes;
mod profiles;
mod scenario;
mod upgrades;
