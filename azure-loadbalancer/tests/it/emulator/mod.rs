//! The emulator on its own: requests and responses.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod etags;
mod faults;
mod limits;
mod operations;
mod pools;
mod references;
mod requests;
mod scale_sets;
mod server;
mod world;
