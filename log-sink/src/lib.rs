#![doc = include_str!("../README.md")]

mod escape;
mod output;
mod queue;
mod seldom;
mod writer;
mod writing;

pub use self::escape::escape_controls;
pub use self::output::Output;
pub use self::queue::Capacity;
pub use self::seldom::Seldom;
pub use self::writer::LogWriter;
pub use self::writing::Event;
