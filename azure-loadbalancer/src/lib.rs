#![doc = include_str!("../README.md")]

pub mod annotations;
pub mod arm;
pub mod config;
#[cfg(feature = "discovery")]
pub mod discovery;
#[cfg(feature = "emulator")]
pub mod emulator;
pub mod execute;
pub mod naming;
pub mod node;
pub mod plan;
pub mod progress;
pub mod provider;
pub mod resources;
pub mod service;
pub mod sources;
pub mod steps;
pub mod text;

pub use self::arm::{ArmClient, ArmError};
pub use self::config::Config;
pub use self::execute::{Executor, Reconciled};
pub use self::node::Node;
pub use self::plan::{Plan, Snapshot, plan};
pub use self::provider::LoadBalancerProvider;
pub use self::service::{Service, ServiceKey};
