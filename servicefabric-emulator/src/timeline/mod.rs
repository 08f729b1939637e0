#![doc = include_str!("../../docs/timeline.md")]

mod behaviour;
mod events;
mod outcome;
mod packages;
mod problem;
mod read;
mod reader;
mod run;
mod script;
#[cfg(test)]
mod tests;
mod tree;

pub use self::outcome::{Entry, Rejected, State, Timeline};
pub use self::problem::{Problem, ScriptErrors};
pub use self::script::Script;
