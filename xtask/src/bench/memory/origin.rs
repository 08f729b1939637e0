//! An HTTP/1.1 server that gives large responses.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Bytes of a large response: more than anything between both ends holds.
const LARGE: usize = 8 << 20;

/// The size of the parts in which it is written.
const PART: usize = 16 * 1024;

/// Starts a server that gives `/large` and, for other paths, a few bytes. It runs as long as this process.
pub(super) fn start() -> crate::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // There are thousands of connections, and each thread needs little.
            let serving = thread::Builder::new().stack_size(64 * 1024);
            // A client that is not served sees its connection end.
            let _ = serving.spawn(move || serve(stream));
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream) -> Option<()> {
    let mut requests = BufReader::new(stream.try_clone().ok()?);
    let part = [b'x'; PART];
    loop {
        let mut first = String::new();
        if requests.read_line(&mut first).ok()? == 0 {
            return None;
        }
        let mut field = String::new();
        while field != "\r\n" {
            field.clear();
            if requests.read_line(&mut field).ok()? == 0 {
                return None;
            }
        }
        let length = if first.contains(" /large ") { LARGE } else { 2 };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
        )
        .ok()?;
        let mut left = length;
        while left > 0 {
            let now = left.min(PART);
            stream.write_all(&part[..now]).ok()?;
            left -= now;
        }
    }
}
