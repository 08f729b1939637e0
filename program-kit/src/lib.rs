#![doc = include_str!("../README.md")]

mod causes;
mod failure;
mod logging;
mod panics;
mod print;
mod signals;
mod sink;
mod stop;

pub use log_sink::escape_controls;

pub use self::causes::with_causes;
pub use self::failure::{Failure, end, read};
pub use self::logging::{LogControl, Logging};
pub use self::print::print;
pub use self::signals::Signals;
pub use self::sink::{dropped_lines, escape_lines, say};
pub use self::stop::Stop;
