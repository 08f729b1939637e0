//! Load balancers in Azure, planned before they are written. See the README of this package.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run()
}
