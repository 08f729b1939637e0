//! A program that runs while it is measured.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest wait for anything that a program does.
const PATIENCE: Duration = Duration::from_secs(300);

/// The interval of looks at what has no signal.
const TICK: Duration = Duration::from_millis(100);

/// A program that runs until it is dropped.
pub(super) struct MeasuredProgram {
    child: Child,
    lines: Receiver<String>,
}

impl MeasuredProgram {
    pub(super) fn start(program: &Path, arguments: &[&str]) -> crate::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        // The command holds our copies of the pipe's write end.
        drop(command);
        Ok(Self {
            child,
            lines: lines_of(reader),
        })
    }

    /// Waits for a line with this text, and returns the address behind it.
    pub(super) fn address_after(&self, text: &str) -> crate::Result<SocketAddr> {
        let mut seen = Vec::new();
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                return Err(format!("`{text}` did not come: {}", seen.join("\n")).into());
            };
            if let Some((_, rest)) = line.split_once(text) {
                let ends = |c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c));
                let address = rest.split(ends).next().unwrap_or_default();
                return Ok(address.parse()?);
            }
            seen.push(line);
        }
    }

    /// Resident memory now, in MiB.
    pub(super) fn resident(&self) -> crate::Result<u64> {
        self.status("VmRSS:")
    }

    /// The most resident memory since the last [`forget_peak`](Self::forget_peak), in MiB.
    pub(super) fn peak(&self) -> crate::Result<u64> {
        self.status("VmHWM:")
    }

    /// Begins to look for the peak from now on.
    pub(super) fn forget_peak(&self) -> crate::Result<()> {
        // proc_pid_clear_refs(5)
        let path = format!("/proc/{}/clear_refs", self.child.id());
        Ok(fs::write(path, "5")?)
    }

    fn status(&self, name: &str) -> crate::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        parse_status(&text, name).ok_or_else(|| format!("the program has no {name}").into())
    }
}

impl Drop for MeasuredProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a value of `/proc/PID/status` in MiB, rounded.
fn parse_status(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((kib + 512) / 1024)
}

/// Reads the output of a program, which would block without it.
fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            // Lines that are not waited for are dropped.
            let _ = send.send(line);
        }
    });
    lines
}

/// The admin API of a gateway.
#[derive(Clone, Copy)]
pub(super) struct Admin(pub(super) SocketAddr);

impl Admin {
    /// Waits until the overview is as wanted. Returns it.
    pub(super) fn wait(
        self,
        what: &str,
        mut is_it: impl FnMut(&Value) -> bool,
    ) -> crate::Result<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let overview = self.overview();
            if let Ok(overview) = &overview
                && is_it(overview)
            {
                return Ok(overview.clone());
            }
            if Instant::now() > until {
                return Err(format!("{what} did not happen: {overview:?}").into());
            }
            super::pause(TICK);
        }
    }

    fn overview(self) -> crate::Result<Value> {
        let mut stream = TcpStream::connect(self.0)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let host = self.0;
        write!(
            stream,
            "GET /api/v1/overview HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let begin = response.find('{').ok_or("it has no content")?;
        let end = response.rfind('}').ok_or("it has no content")?;
        Ok(serde_json::from_str(&response[begin..=end])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_status_are_mebibytes() {
        let text = "Name:\tx\nVmHWM:\t  204800 kB\nVmRSS:\t  1535 kB\n";
        assert_eq!(parse_status(text, "VmRSS:"), Some(1));
        assert_eq!(parse_status(text, "VmHWM:"), Some(200));
        assert_eq!(parse_status(text, "VmSwap:"), None);
    }
}
