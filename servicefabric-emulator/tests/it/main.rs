//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod clients;
mod cluster;
mod gateway;
mod hosting;
mod program;
mod timelines;
