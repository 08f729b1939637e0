//! Tests of the whole cluster.

mod errors;
mod hosted;
mod nodes;
mod pages;
mod properties;
mod replicas;
mod upgrades;
