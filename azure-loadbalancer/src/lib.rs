#![doc = include_str!("../README.md")]

#[cfg(feature = "emulator")]
pub mod emulator;
pub mod resources;
