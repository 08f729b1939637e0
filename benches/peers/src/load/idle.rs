//! Idle connections, each used once and kept open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Exchange;
use super::response::Response;

/// Maximum duration of one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens `connections` connections, one after the other, and sends one request on each. They stay open
/// until the returned value is dropped.
///
/// # Errors
///
/// Returns the error of the first connection that fails, with its number.
pub(crate) fn hold(
    address: SocketAddr,
    exchange: Exchange,
    connections: usize,
) -> io::Result<Vec<TcpStream>> {
    let request = exchange.render(true);
    let mut held = Vec::with_capacity(connections);
    for number in 0..connections {
        let opened = one(address, &request, exchange.resource.len());
        held.push(opened.map_err(|error| {
            io::Error::new(error.kind(), format!("connection {number}: {error}"))
        })?);
    }
    Ok(held)
}

fn one(address: SocketAddr, request: &[u8], expected: u64) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(request)?;
    let mut response = Response::new(expected);
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer)?;
        let complete = if read == 0 {
            response.end()
        } else {
            response.consume(&buffer[..read])
        };
        if complete.map_err(io::Error::other)? {
            return Ok(socket);
        }
    }
}
