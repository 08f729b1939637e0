//! Readers of what comes from other programs, for fuzz targets.

pub use crate::limiter::{FuzzedReply, MOST_OF_A_REPLY, fuzz_redis_reply};
