//! Cases of the behaviour that Kubernetes' provider has, and of what it gets wrong.

mod asked;
mod configuration;
mod conflicts;
mod frontends;
mod lifecycle;
mod members;
mod nodes_and_rules;
mod public_ips;
mod rules;
mod security;
mod security_merged;
mod selection;
