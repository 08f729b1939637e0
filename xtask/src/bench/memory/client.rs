//! Clients that ask for much and read nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection of HTTP/1.1 with one request for a large response.
pub(super) fn http1(gateway: SocketAddr) -> crate::Result<TcpStream> {
    let mut stream = TcpStream::connect(gateway)?;
    write!(stream, "GET /large HTTP/1.1\r\nHost: a.example\r\n\r\n")?;
    Ok(stream)
}

/// A connection of HTTP/2 with so many requests, and windows that allow all of the responses.
pub(super) fn http2(gateway: SocketAddr, streams: u32) -> crate::Result<TcpStream> {
    let mut stream = TcpStream::connect(gateway)?;
    stream.write_all(&asks(streams))?;
    Ok(stream)
}

/// A request whose response is read.
pub(super) fn small(gateway: SocketAddr) -> crate::Result<()> {
    let mut stream = TcpStream::connect(gateway)?;
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    match response.starts_with("HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(format!("a small request got {response:?}").into()),
    }
}

/// The bytes of a connection of HTTP/2 (RFC 9113) with these requests.
fn asks(streams: u32) -> Vec<u8> {
    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    const HEADERS: u8 = 1;
    const END_STREAM_AND_HEADERS: u8 = 5;
    const LARGEST_WINDOW: u32 = (1 << 31) - 1;
    const FIRST_WINDOW: u32 = 65_535;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE
    let mut setting = vec![0, 4];
    setting.extend(LARGEST_WINDOW.to_be_bytes());
    bytes.extend(frame(SETTINGS, 0, 0, &setting));
    let more = (LARGEST_WINDOW - FIRST_WINDOW).to_be_bytes();
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &more));
    // RFC 7541: `:method: GET` and `:scheme: http` from the table, `:path` and `:authority` as texts.
    let mut fields = vec![0x82, 0x86];
    for (name, value) in [(4, "/large"), (1, "a.example")] {
        fields.extend([name, value.len() as u8]);
        fields.extend(value.as_bytes());
    }
    for number in 0..streams {
        bytes.extend(frame(
            HEADERS,
            END_STREAM_AND_HEADERS,
            2 * number + 1,
            &fields,
        ));
    }
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(content);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_a_head_of_its_own() {
        let bytes = asks(2);
        let heads = frame(1, 5, 1, b"\x82\x86\x04\x06/large\x01\x09a.example");
        assert!(bytes.windows(heads.len()).any(|part| part == heads));
        let last = &bytes[bytes.len() - heads.len()..];
        assert_eq!(last[..9], [0, 0, 21, 1, 5, 0, 0, 0, 3]);
    }
}
