#![doc = include_str!("../README.md")]

pub mod annotations;
pub mod config;
pub mod naming;
pub mod node;
pub mod plan;
pub mod resources;
pub mod service;
pub mod steps;

pub use self::config::Config;
pub use self::node::Node;
pub use self::plan::{Plan, Snapshot, plan};
pub use self::service::{Service, ServiceKey};
