//! Compares the cost per request of this project's gateway and other proxies, in interleaved
//! rounds.
//!
//! ```sh
//! cargo xtask bench peers --quick
//! ```
//!
//! This command fetches and builds missing programs, starts an origin, a load generator and every
//! proxy, and prints ratios. `benches/COMPARISON.md` describes the method.

#[cfg(target_os = "linux")]
mod case;
#[cfg(target_os = "linux")]
mod cli;
#[cfg(target_os = "linux")]
mod contest;
#[cfg(target_os = "linux")]
mod framing;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
mod histogram;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod origin;
#[cfg(target_os = "linux")]
mod poll;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod proxies;
#[cfg(target_os = "linux")]
mod ratio;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod tls;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!(
        "bench-peers: it reads processor time from Linux's scheduler, and runs on Linux only"
    );
    ExitCode::FAILURE
}
