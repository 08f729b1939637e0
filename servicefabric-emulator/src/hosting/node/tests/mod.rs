//! What holds whatever happens: random scripts, looked at after every single step from inside.

mod invariants;
mod log;
mod properties;
mod script;
