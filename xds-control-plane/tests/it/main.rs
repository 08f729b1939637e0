//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod docs;
mod live;
mod program;
mod xds;
