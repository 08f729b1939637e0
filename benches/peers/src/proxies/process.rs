//! A proxy process: start, readiness, observation, stop.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal,
};

use super::Kind;
use crate::load::{HOST, ROUTE};
use crate::system;

/// Maximum time until a proxy answers its first request.
const READY: Duration = Duration::from_secs(30);

/// Time from the stop signal until the process is killed.
const END: Duration = Duration::from_secs(3);

/// Poll interval.
const LOOK: Duration = Duration::from_millis(10);

/// Wraps a command in this program, so that it ends when this program ends for any reason.
pub(crate) fn guarded(kind: Kind, command: &Command) -> io::Result<Command> {
    let mut guarded = Command::new(std::env::current_exe()?);
    guarded.arg("guard");
    if ends_by_interrupt(kind) {
        guarded.arg("--interrupt");
    }
    guarded
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(name, value),
            None => guarded.env_remove(name),
        };
    }
    Ok(guarded)
}

/// Replaces this process by `program`, which receives a signal when its parent ends. Returns only
/// on failure.
///
/// The processes of a proxy have a process group, which Ctrl-C at a terminal does not reach.
pub(crate) fn guard(program: &OsStr, arguments: &[OsString], interrupt: bool) -> io::Error {
    let signal = if interrupt { Signal::INT } else { Signal::TERM };
    match set_parent_process_death_signal(Some(signal)) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error.into(),
    }
}

/// True for Pingora, which treats SIGTERM as the start of a grace period of minutes.
fn ends_by_interrupt(kind: Kind) -> bool {
    kind == Kind::Pingora
}

/// A program and its children. All of them are stopped when this is dropped.
pub(crate) struct Running {
    kind: Kind,
    child: Child,
    output: PathBuf,
}

/// Fields that a proxy adds to a request, and the forwarding of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub(crate) host: bool,
    pub(crate) x_for: bool,
    pub(crate) x_proto: bool,
    pub(crate) x_host: bool,
}

impl Running {
    /// Starts a command in its own process group. Its output goes into a file in `directory`.
    pub(crate) fn start(kind: Kind, mut command: Command, directory: &Path) -> io::Result<Self> {
        let output = directory.join("output.log");
        let file = File::create(&output)?;
        let child = command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()?;
        Ok(Self {
            kind,
            child,
            output,
        })
    }

    /// Waits until it forwards a request. Returns the fields that the origin saw.
    ///
    /// # Errors
    ///
    /// Returns text for the user, with the last lines of the output, if the process ends or takes
    /// too long.
    pub(crate) fn ready(&mut self, address: SocketAddr) -> Result<Forwarded, String> {
        let start = Instant::now();
        loop {
            match echo(address) {
                Ok(request) => return Ok(Forwarded::of(&request)),
                Err(error) if start.elapsed() > READY => {
                    return Err(format!(
                        "it does not answer ({error}): {}",
                        self.last_output()
                    ));
                }
                Err(_) => {}
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it has ended ({status}): {}", self.last_output()));
            }
            thread::park_timeout(LOOK);
        }
    }

    /// The ids of its processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        system::family(self.child.id())
    }

    /// Stops it. Returns the exit status and all output, or `None` if it had to be killed.
    ///
    /// # Errors
    ///
    /// Fails if the system does not report the status.
    pub(crate) fn end(
        mut self,
        patience: Duration,
    ) -> Result<(Option<ExitStatus>, String), String> {
        self.ask_to_end();
        let start = Instant::now();
        let status = loop {
            let status = self.child.try_wait().map_err(|error| error.to_string())?;
            if status.is_some() || start.elapsed() > patience {
                break status;
            }
            thread::park_timeout(LOOK);
        };
        Ok((status, fs::read_to_string(&self.output).unwrap_or_default()))
    }

    fn ask_to_end(&self) {
        let signal = if ends_by_interrupt(self.kind) {
            Signal::INT
        } else {
            Signal::TERM
        };
        if let Some(id) = self.id() {
            let _ = kill_process(id, signal);
        }
    }

    fn last_output(&self) -> String {
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(5)..];
        if last.is_empty() {
            "it said nothing".to_owned()
        } else {
            last.join(" / ")
        }
    }

    fn id(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(id) = self.id() else { return };
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask_to_end();
        }
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > END {
                break;
            }
            thread::park_timeout(LOOK);
        }
        // The rest of the group; an error means that the group is empty.
        let _ = kill_process_group(id, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Forwarded {
    fn of(request: &str) -> Self {
        let has = |name: &str, value: Option<&str>| {
            request.lines().any(|line| {
                line.split_once(':').is_some_and(|(found, rest)| {
                    found.eq_ignore_ascii_case(name)
                        && value.is_none_or(|value| rest.trim() == value)
                })
            })
        };
        Self {
            host: has("host", Some(HOST)),
            // Envoy writes an address of the machine's own where the client is on loopback.
            x_for: has("x-forwarded-for", None),
            x_proto: has("x-forwarded-proto", Some("http")),
            x_host: has("x-forwarded-host", Some(HOST)),
        }
    }

    /// The missing fields as text. `None` if nothing is missing.
    pub(crate) fn missing(self) -> Option<String> {
        let all = [
            (self.host, "the client's Host"),
            (self.x_for, "X-Forwarded-For"),
            (self.x_proto, "X-Forwarded-Proto"),
            (self.x_host, "X-Forwarded-Host"),
        ];
        let missing: Vec<_> = all
            .into_iter()
            .filter(|(there, _)| !there)
            .map(|(_, what)| what)
            .collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

/// Requests the echo resource of the origin through a proxy.
fn echo(address: SocketAddr) -> io::Result<String> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        socket,
        "GET {ROUTE}/echo HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    let (head, request) = text.split_once("\r\n\r\n").unwrap_or_default();
    if head.starts_with("HTTP/1.1 200") {
        Ok(request.to_owned())
    } else {
        let status = head.lines().next().unwrap_or_default();
        Err(io::Error::other(format!("the first answer is `{status}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_proxy_adds_is_read_from_what_the_origin_saw() {
        let all = "GET /echo HTTP/1.1\r\nhost: bench.example\r\nx-forwarded-for: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: bench.example\r\n";
        assert_eq!(Forwarded::of(all).missing(), None);
        let none = "GET /echo HTTP/1.1\r\nHost: 127.0.0.1:80\r\n";
        assert_eq!(
            Forwarded::of(none).missing().as_deref(),
            Some("the client's Host, X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host")
        );
    }

    #[test]
    fn a_program_that_ends_is_reported_with_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such option >&2; exit 3"]);
        let mut running = Running::start(Kind::Nginx, command, directory.path()).unwrap();
        // A port without a listener.
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let why = running.ready(address).unwrap_err();
        assert_eq!(why, "it has ended (exit status: 3): no such option");
    }
}
