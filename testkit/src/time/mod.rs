//! Guards against hangs, measured on the wall clock.
//!
//! A test that pauses tokio's clock lets virtual time jump to the nearest timer whenever everything is idle. A guard on
//! that clock would itself be such a timer and could fire before the timer under test, so guards here count real
//! seconds: they never move virtual time, and they fire only when a test really hangs.
//!
//! ```
//! use testkit::time::{eventually, guarded};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // Panics with the line number if the future is still pending after `GUARD`.
//! let answer = guarded("the answer", async { 42 }).await;
//! assert_eq!(answer, 42);
//!
//! // For events without a notification, such as those of another process: checks repeatedly.
//! eventually("the temporary directory exists", || async { std::env::temp_dir().is_dir() }).await;
//! # }
//! ```

mod eventually;
mod guard;
mod wall_clock;

pub use self::eventually::eventually;
pub use self::guard::{GUARD, guarded};
pub use self::wall_clock::{Elapsed, WallClockTimeout, within};

#[cfg(test)]
mod tests;
