//! Control planes, gateways and Envoys together, with real programs and the files of `docs/scale.md`.

#![cfg(target_os = "linux")]

mod balanced;
mod balancer;
mod consul;
mod datacenters;
mod discovered;
mod hanging;
mod page;
mod programs;
mod restarts;
mod traffic;
