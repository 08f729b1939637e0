//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod admin_page;
mod check_and_run;
mod cli;
mod clients;
mod common;
mod consul;
mod docs;
mod explain;
mod faults;
mod fleet;
mod hot_restart;
mod issuer;
mod layers;
mod limits;
mod mutual_tls;
mod names;
mod policies;
mod run;
mod serf;
mod service;
mod service_fabric;
mod shared_limits;
mod sink;
mod traces;
mod xds;
mod xds_faults;
