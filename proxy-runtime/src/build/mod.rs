//! How a proxy is made, and what keeps it up to date.

mod builder;
mod driver;

pub use self::builder::ProxyBuilder;
pub use self::driver::Driver;
