//! Report of connections that were reset for lack of memory.

#[cfg(any(feature = "admin", test))]
use std::time::Duration;

#[cfg(any(feature = "admin", test))]
use proxy_model::Problem;
use tokio::time::Instant;

use super::offers::Source;

/// Time for which the verdict names it. 30 s.
#[cfg(any(feature = "admin", test))]
const VERDICT: Duration = Duration::from_secs(30);

/// Time for which it is among the problems, as for loops. 5 min.
#[cfg(any(feature = "admin", test))]
const LISTED: Duration = Duration::from_secs(5 * 60);

/// A moment at which connections were reset for lack of memory, and the client address that held most.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "admin", test)),
    expect(dead_code, reason = "there is nobody to tell")
)]
pub(crate) struct Shed {
    pub(crate) at: Instant,
    pub(crate) source: Source,
    pub(crate) bytes: u64,
    pub(crate) connections: u64,
}

#[cfg(any(feature = "admin", test))]
impl Shed {
    /// Returns true within 30 seconds.
    pub(crate) fn is_recent(&self) -> bool {
        self.at.elapsed() < VERDICT
    }

    /// Returns a warning for five minutes: the client address that held most, its bytes, and the key to change. `limit`
    /// is in bytes; `reset` connections were reset since the start.
    pub(crate) fn problem(&self, limit: u64, reset: u64) -> Option<Problem> {
        let age = self.at.elapsed();
        if age >= LISTED {
            return None;
        }
        let message = format!(
            "clients want more memory than the {} that they may hold: {} reset since the start, the last {} s ago; \
             {} held most, {} in {}",
            bytes(limit),
            counted(reset, "connection was", "connections were"),
            age.as_secs(),
            self.source,
            bytes(self.bytes),
            counted(self.connections, "connection", "connections"),
        );
        let problem = Problem::warning(
            "/Server/Limits/MemoryBytes",
            "memory_limit_reached",
            message,
        );
        Some(problem.with_suggestion(
            "raise `Server.Limits.MemoryBytes` if these clients are honest, or set `Server.Limits.ConnectionsPerAddress`",
        ))
    }
}

#[cfg(any(feature = "admin", test))]
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(any(feature = "admin", test))]
fn bytes(bytes: u64) -> String {
    match bytes {
        _ if bytes < 10 * 1024 => format!("{bytes} bytes"),
        _ if bytes < 10 << 20 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes >> 20),
    }
}
