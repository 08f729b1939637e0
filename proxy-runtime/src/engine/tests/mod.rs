//! What is hard to provoke from outside.

mod allocations;
mod interim;
mod scene;
mod second_try;
#[cfg(feature = "http2")]
mod streams;
mod waiting;
