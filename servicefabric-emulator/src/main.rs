//! A local Service Fabric cluster to develop and test against. See the README of this package.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run()
}
