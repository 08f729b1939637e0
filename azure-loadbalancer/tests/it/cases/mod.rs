//! The behaviour of Kubernetes' provider, and corrections of its mistakes.

mod asked;
mod configuration;
mod conflicts;
mod frontends;
mod lifecycle;
mod members;
mod node_addresses;
mod nodes_and_rules;
mod public_ips;
mod rules;
mod security;
mod security_merged;
mod selection;
