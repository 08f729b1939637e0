//! The builder of a proxy, and the driver that keeps it up to date.

mod builder;
mod driver;

pub use self::builder::ProxyBuilder;
pub use self::driver::Driver;
