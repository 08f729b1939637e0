//! What is hard to provoke from outside.

mod allocations;
mod interim;
mod scene;
mod second_try;
#[cfg(target_os = "linux")]
mod splice;
#[cfg(feature = "http2")]
mod streams;
mod waiting;
