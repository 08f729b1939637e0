//! The gateway under a counting tool, with an exact number of requests.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::find;
use super::profile::Profile;
use super::row::{Form, Row};
use crate::load::{self, Edge, Exchange, Extent, Pace, Plan, Target};
use crate::origin::{Origin, Resource};
use crate::proxies::{Certificate, Ports, Running, Setup, guarded};
use crate::syscalls::{self, Calls};

const CONNECTIONS: usize = 64;

/// Number of HTTP/2 connections.
const STREAMS: usize = 8;

/// Number of counted requests.
const REQUESTS: u64 = 5_000;

/// Warm-up time for buffers to grow and connections to open; valgrind takes fifty times as long for
/// everything.
const WARM_UP: Duration = Duration::from_millis(300);
const SLOW_WARM_UP: Duration = Duration::from_secs(3);

/// Time limit for a program to end under valgrind.
const END: Duration = Duration::from_secs(30);

/// The setup of a measurement.
pub(super) struct Bench<'a> {
    pub(super) row: &'a Row,
    /// The forwarding program.
    pub(super) program: PathBuf,
    pub(super) peers: &'a Path,
    pub(super) directory: &'a Path,
    pub(super) certificate: &'a Certificate,
}

impl Bench<'_> {
    /// Instructions per request, by function, and heap blocks.
    pub(super) fn profile(&self) -> Result<Profile, String> {
        let file = self.directory.join("callgrind.out");
        for old in self.threads()? {
            fs::remove_file(&old).map_err(|error| format!("{}: {error}", old.display()))?;
        }
        let mut written = OsString::from("--callgrind-out-file=");
        written.push(&file);
        let mut valgrind = Command::new(find(self.peers, "valgrind")?);
        valgrind
            .args(["--tool=callgrind", "--separate-threads=yes"])
            .arg(written);
        let vgdb = find(self.peers, "vgdb")?;
        let (_origin, running, address) = self.start(Some(valgrind))?;
        let process = *running
            .processes()
            .first()
            .ok_or("the gateway has no process")?;
        let mut told = Ok(());
        let mut probe = |edge| {
            let verb = match edge {
                Edge::Begin => "zero",
                Edge::End => "dump",
            };
            if told.is_ok() {
                told = tell(&vgdb, process, verb);
            }
        };
        self.put(SLOW_WARM_UP, address, &mut probe)?;
        told?;
        // The dump is complete when the program continues; its end proves that.
        if running.end(END)?.0.is_none() {
            return Err(format!(
                "the gateway did not end within {} s",
                END.as_secs()
            ));
        }
        let mut threads = Vec::new();
        for thread in self.threads()? {
            let text = fs::read_to_string(&thread)
                .map_err(|error| format!("{}: {error}", thread.display()))?;
            threads.push(Profile::parse(&text));
        }
        // The other threads are the control plane's, which works periodically: under valgrind far
        // more periods pass per request.
        let worker = threads
            .into_iter()
            .max_by(|a, b| a.of_server().total_cmp(&b.of_server()))
            .filter(|worker| worker.of_server() > 0.0);
        match worker {
            Some(worker) => Ok(worker.per_request(REQUESTS)),
            None => Err(format!("{}: no thread serves", file.display())),
        }
    }

    /// The files of callgrind's first dump, one for each thread.
    fn threads(&self) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(self.directory).map_err(|error| error.to_string())?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths.filter(|path| is_of_thread(path)).collect())
    }

    /// System calls per request.
    pub(super) fn system_calls(&self) -> Result<Calls, String> {
        let strace = find(self.peers, "strace")?;
        let (_origin, running, address) = self.start(None)?;
        let mut trace = None;
        let mut counted = Err("the load did not come to its end".to_owned());
        let mut probe = |edge| match edge {
            Edge::Begin => {
                trace = Some(syscalls::Trace::begin(
                    &strace,
                    &running.processes(),
                    self.directory,
                ))
            }
            Edge::End => {
                if let Some(trace) = trace.take() {
                    counted = trace.and_then(syscalls::Trace::end);
                }
            }
        };
        self.put(WARM_UP, address, &mut probe)?;
        Ok(counted?.per_request(REQUESTS))
    }

    /// Starts the gateway, under another program if one is given, with an origin behind it.
    fn start(&self, through: Option<Command>) -> Result<(Origin, Running, SocketAddr), String> {
        let origin = match self.row.http2_origins {
            true => Origin::start_http2(),
            false => Origin::start(None),
        };
        let origin = origin.map_err(|error| error.to_string())?;
        let ports = Ports::choose().map_err(|error| error.to_string())?;
        let setup = Setup {
            directory: self.directory,
            ports,
            origins: origin.addresses(),
            http2_origins: self.row.http2_origins,
            workers: 1,
            large_bodies: false,
            open_files: 2_048,
            certificate: self.certificate,
        };
        let kind = self.row.kind;
        let started = kind.command(&self.program, &setup).and_then(|gateway| {
            let command = match through {
                Some(mut through) => {
                    through.arg(gateway.get_program()).args(gateway.get_args());
                    through
                }
                None => gateway,
            };
            Running::start(kind, guarded(kind, &command)?, self.directory)
        });
        let mut running = started.map_err(|error| error.to_string())?;
        let address = kind.address(ports, self.row.form.protocol());
        running.ready(address)?;
        Ok((origin, running, address))
    }

    fn put(
        &self,
        warm_up: Duration,
        address: SocketAddr,
        probe: &mut dyn FnMut(Edge),
    ) -> Result<(), String> {
        put(self.row.resource, self.row.form, warm_up, address, probe)
    }
}

/// True for `callgrind.out.1-02`: the first part, and a thread.
fn is_of_thread(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let thread = name.strip_prefix("callgrind.out.1-");
    thread.is_some_and(|thread| thread.parse::<u32>().is_ok())
}

/// Makes callgrind reset its counts, or dump them.
fn tell(vgdb: &Path, process: u32, verb: &str) -> Result<(), String> {
    let told = Command::new(vgdb)
        .arg(format!("--pid={process}"))
        .arg(verb)
        .output()
        .map_err(|error| format!("vgdb: {error}"))?;
    if told.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&told.stderr);
    Err(format!(
        "vgdb cannot tell valgrind to {verb} ({}): {}",
        told.status,
        said.trim()
    ))
}

/// Sends [`REQUESTS`] through the gateway after a warm-up. Notifies `probe` of their beginning and
/// end.
fn put(
    resource: Resource,
    form: Form,
    warm_up: Duration,
    address: SocketAddr,
    probe: &mut dyn FnMut(Edge),
) -> Result<(), String> {
    let plan = Plan {
        exchange: Exchange::get(resource),
        pace: match form {
            Form::Churn => Pace::Churn,
            Form::KeptAlive | Form::OneConnection | Form::Streams => Pace::Closed,
        },
        connections: match form {
            Form::Streams => CONNECTIONS / STREAMS,
            Form::OneConnection => 1,
            Form::KeptAlive | Form::Churn => CONNECTIONS,
        },
        warm_up,
        extent: Extent::Requests(REQUESTS),
    };
    let tally = match form {
        Form::Streams => load::run_http2(&plan, address, STREAMS, probe),
        Form::KeptAlive | Form::OneConnection | Form::Churn => {
            load::run_http1(&plan, &Target { address, tls: None }, probe)
        }
    };
    let tally = tally.map_err(|error| error.to_string())?;
    if tally.errors > 0 || tally.requests != REQUESTS {
        let first = tally.first_error.unwrap_or_default();
        return Err(format!(
            "{} of {REQUESTS} requests were answered: {first}",
            tally.requests
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn requests_are_put_through_between_the_edges() {
        let origin = Origin::start(None).unwrap();
        let mut edges = Vec::new();
        let mut probe = |edge| edges.push(edge);
        let (warm_up, address) = (Duration::from_millis(5), origin.addresses()[0]);
        put(
            Resource::Chunks16,
            Form::KeptAlive,
            warm_up,
            address,
            &mut probe,
        )
        .unwrap();
        assert_eq!(edges, [Edge::Begin, Edge::End]);
    }

    #[test]
    fn files_of_the_first_part_are_told_from_others() {
        let thread = |name: &str| is_of_thread(&Path::new("/somewhere").join(name));
        assert!(thread("callgrind.out.1-01") && thread("callgrind.out.1-17"));
        for other in [
            "callgrind.out-02",
            "callgrind.out.2-02",
            "callgrind.out.1",
            "output.log",
        ] {
            assert!(!thread(other), "{other}");
        }
    }

    #[test]
    fn what_vgdb_cannot_do_is_reported_with_its_words() {
        let directory = tempfile::tempdir().unwrap();
        let vgdb = directory.path().join("vgdb");
        fs::write(&vgdb, "#!/bin/sh\necho no such process >&2; exit 2\n").unwrap();
        fs::set_permissions(&vgdb, fs::Permissions::from_mode(0o755)).unwrap();
        let why = tell(&vgdb, 1, "zero").unwrap_err();
        assert_eq!(
            why,
            "vgdb cannot tell valgrind to zero (exit status: 2): no such process"
        );
    }
}
