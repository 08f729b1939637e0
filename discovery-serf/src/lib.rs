#![doc = include_str!("../README.md")]

pub mod catalog;
pub mod client;
mod discoverer;
pub mod generate;
mod member;
pub mod options;
pub mod registration;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod wire;

pub use self::discoverer::{Dial, SerfDiscoverer, Transport};
pub use self::member::{Member, MemberStatus, Tags};
pub use self::options::{HoldOptions, SerfOptions};
