//! What is hard to provoke from outside.

mod activity;
mod allocations;
mod chunks;
mod early;
mod interim;
mod memory;
mod scene;
mod second_try;
mod sockets;
#[cfg(feature = "http2")]
mod streams;
mod waiting;
