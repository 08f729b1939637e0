//! The runtime state beside the configuration: generations, requests in flight, health.
//!
//! A [`Generation`] is one configuration with the live state of its routes, clusters and
//! destinations. It is built aside and published with one pointer, so a request sees one consistent
//! state to its end. Each generation inherits live state by id: a cluster keeps its cursor and
//! counters; a destination keeps its health, its requests in flight and its connections while its
//! address stays the same.

mod generation;
mod route;

pub(crate) use self::generation::{Generation, Registered};
pub(crate) use self::route::{Nowhere, RouteState};

#[cfg(test)]
mod tests;
