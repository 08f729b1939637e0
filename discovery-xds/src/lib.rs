#![doc = include_str!("../README.md")]

mod connect;
mod discoverer;
mod leads;
mod memo;
mod options;
mod protocol;
pub mod read;
mod section;
mod session;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub use self::connect::{ClientError, TlsOptions};
pub use self::discoverer::XdsDiscoverer;
pub use self::options::{Mode, XdsOptions};
pub use self::section::Section;
