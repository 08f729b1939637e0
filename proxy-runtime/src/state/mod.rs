//! What the proxy knows at run time beside the configuration: generations, in-flight counts, health.
//!
//! A [`Generation`] is one configuration together with the live state of its routes, clusters and destinations. It is
//! built aside and published with one pointer, so that a request that loaded it sees one consistent whole to its end.
//! Live state is carried over from generation to generation by id: a cluster keeps its cursor and counters, a
//! destination keeps its health, its requests in flight and its connections for as long as its address stays the same.

mod generation;
mod route;

pub(crate) use self::generation::{Generation, Registered};
pub(crate) use self::route::{Nowhere, RouteState};

#[cfg(test)]
mod tests;
