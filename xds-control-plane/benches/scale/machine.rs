//! The kernel's measurements of a process; zero where their format is unknown.

use std::time::Duration;

/// Returns the processor time used by a process.
pub(crate) fn cpu(process: u32) -> Duration {
    // USER_HZ, which is 100 on every architecture that these run on (proc(5)).
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields = after.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// Returns the resident memory of a process, in megabytes.
pub(crate) fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes: u64 = kilobytes.and_then(|n| n.parse().ok()).unwrap_or_default();
    kilobytes / 1024
}
