//! A control plane for Envoy fleets. See the README of this package.

fn main() {}
