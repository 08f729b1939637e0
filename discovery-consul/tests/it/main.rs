//! The integration tests, in one program: each links the whole of the crate and its dependencies.

#[cfg(feature = "reqwest")]
mod http;
#[cfg(all(feature = "reqwest", feature = "testing"))]
mod live;
