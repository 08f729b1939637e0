//! Properties for random scripts, checked from inside after every step.

mod invariants;
mod log;
mod properties;
mod script;
