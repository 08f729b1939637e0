//! The integration tests, in one program: each links the whole of the crate and its dependencies.

#[cfg(feature = "emulator")]
mod arm;
mod cases;
#[cfg(feature = "emulator")]
mod clients;
mod crossings;
#[cfg(all(feature = "discovery", feature = "emulator"))]
mod discovery;
#[cfg(feature = "emulator")]
mod emulator;
#[cfg(feature = "emulator")]
mod execute;
#[cfg(feature = "kube")]
mod kubernetes;
#[cfg(feature = "program")]
mod program;
mod properties;
mod support;
