//! `health`: polls the readiness of a running instance, for health checks in images that have no other
//! program.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use http::Uri;

use super::{Failure, print};
use crate::cli::Health;

/// The length of the start of a status line: `HTTP/1.1 200`.
const STATUS_LINE: usize = "HTTP/1.1 200".len();

/// Succeeds if the admin API reports that the instance is ready.
pub(crate) fn health(options: &Health) -> Result<(), Failure> {
    let timeout = Duration::from_secs(options.timeout.into());
    let failure = |reason: &str| Failure::new(format!("{}: {reason}", options.url));
    match status(&options.url, timeout) {
        Ok(200) => print("ready"),
        Ok(status) => Err(failure(&format!("not ready, status {status}"))),
        Err(error) => Err(failure(&error.to_string())),
    }
}

/// Returns the status of a GET request over plain HTTP.
fn status(url: &Uri, timeout: Duration) -> io::Result<u16> {
    let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidInput, what);
    if url.scheme_str() != Some("http") {
        return Err(invalid("the URL has to begin with http://"));
    }
    let authority = url.authority().ok_or_else(|| invalid("there is no host"))?;
    // An IPv6 address is resolved without its brackets.
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(80);
    let deadline = Instant::now() + timeout;
    let mut stream = connect((host, port), deadline)?;
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(request.as_bytes())?;
    read_status(&mut stream, deadline)
}

/// Connects to the first address that accepts.
fn connect(host: impl ToSocketAddrs, deadline: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn read_status(stream: &mut TcpStream, deadline: Instant) -> io::Result<u16> {
    let mut line = [0; STATUS_LINE];
    let mut filled = 0;
    while filled < line.len() {
        // Each read gets the remaining time, so that single bytes cannot extend the timeout.
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut line[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    let line = std::str::from_utf8(&line).unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..))
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP/1.1"))
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}
