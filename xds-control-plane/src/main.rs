//! A control plane for Envoy fleets. See the README of this package.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run()
}
