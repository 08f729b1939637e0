#![doc = include_str!("../README.md")]

mod causes;
mod failure;
mod logging;
mod print;
mod signals;
mod stop;

pub use self::causes::with_causes;
pub use self::failure::{Failure, read};
pub use self::logging::Logging;
pub use self::print::print;
pub use self::signals::Signals;
pub use self::stop::Stop;
