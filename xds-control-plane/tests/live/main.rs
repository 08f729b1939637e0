//! A real Consul in two datacenters, this control plane, and a real Envoy that takes traffic.

mod fleet;
mod traffic;
