use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::process;
use crate::time::{GUARD, within};

/// Maximum output that is read; a program that writes more is stopped by its time limit.
const MOST_OUTPUT: u64 = 64 << 20;

/// The output and exit status of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeerOutput {
    /// The exit status.
    pub status: ExitStatus,
    /// The standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// The standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

impl PeerOutput {
    /// Panics with the whole output unless the exit status is 0.
    #[track_caller]
    pub fn expect_success(self) -> Self {
        assert!(
            self.status.success(),
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }
}

/// Runs a command to its end, for at most [`GUARD`] of real time.
///
/// # Panics
///
/// As for [`output_within`].
#[track_caller]
pub fn output(command: Command) -> impl Future<Output = PeerOutput> {
    output_within(GUARD, command)
}

/// Runs a command to its end, for at most `limit` of real time.
///
/// Cancel safety: the program is killed when the future is dropped.
///
/// # Panics
///
/// When it cannot be started, or has not ended (and closed its output) in time.
#[track_caller]
pub fn output_within(limit: Duration, mut command: Command) -> impl Future<Output = PeerOutput> {
    let shown = format!("{:?}", command.as_std());
    let mut child = process::start(&mut command);
    let stdout = child.stdout();
    let stderr = child.stderr();
    async move {
        let done = within(limit, async {
            let (stdout, stderr, status) = tokio::join!(read(stdout), read(stderr), child.wait());
            PeerOutput {
                status,
                stdout,
                stderr,
            }
        });
        match done.await {
            Ok(output) => output,
            Err(elapsed) => panic!("{shown}: {elapsed}"),
        }
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // Output before an error is still worth showing.
        let _ = stream.take(MOST_OUTPUT).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the address that follows `before` in a program's output.
///
/// # Panics
///
/// Panics if there is none.
#[must_use]
pub fn address_after(output: &str, before: &str) -> SocketAddr {
    let (_, rest) = output
        .split_once(before)
        .unwrap_or_else(|| panic!("there is no `{before}` in:\n{output}"));
    let end = rest
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':')))
        .unwrap_or(rest.len());
    rest[..end]
        .trim_end_matches([':', '.'])
        .parse()
        .unwrap_or_else(|_| panic!("no address in `{rest}`"))
}
