//! Tests of situations that are hard to provoke from outside.

mod accounts;
mod activity;
mod allocations;
mod chunks;
mod early;
#[cfg(feature = "http2")]
mod full_socket;
mod interim;
mod lane;
#[cfg(feature = "http2")]
mod large_reads;
mod memory;
mod rejections;
mod same_head;
mod scene;
mod second_try;
mod sockets;
#[cfg(feature = "http2")]
mod streams;
mod uploads;
mod waiting;
