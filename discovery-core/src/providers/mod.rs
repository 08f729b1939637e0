//! Providers for configuration that needs no discovery.

#[cfg(feature = "file")]
pub mod file;
mod fixed;

#[cfg(feature = "file")]
pub use self::file::FileProvider;
pub use self::fixed::StaticProvider;
