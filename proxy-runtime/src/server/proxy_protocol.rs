//! The PROXY protocol, versions 1 and 2: a header with the client's address at the beginning of a connection, written
//! by a load balancer that forwards TCP.
//!
//! The header is read exactly: what follows it stays in the socket, so that TLS and both versions of HTTP begin as on
//! any other connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use proxy_header::{ParseConfig, Protocol, ProxiedAddress, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::connection::handshake;
use super::metrics::WorkerMetrics;
use super::shared::{ConnectionPermit, WorkerShared};
use crate::connection::{ConnectionInfo, Network};
use crate::observe::targets;

/// The beginning of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The beginning of version 1.
const GREETING: &[u8; 6] = b"PROXY ";
/// The longest header of version 1, which the protocol names.
const LONGEST_LINE: usize = 107;
/// The part of version 2 that all headers have: its last two bytes are the length of the rest.
const FIXED: usize = SIGNATURE.len() + 4;
/// The longest rest of version 2: addresses, and additions of the load balancer, such as a certificate.
const LONGEST_REST: usize = 4096;

/// The [PROXY protocol](https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt) at a listener: each connection
/// begins with a header of version 1 or 2 that names the client.
///
/// A connection from elsewhere than the senders is closed, and so is one without a valid header in time: otherwise any
/// program could claim to be any client. A header without a client (`LOCAL`, `UNKNOWN`), as of a health check, leaves
/// the sender as the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyProtocol {
    senders: Arc<[Network]>,
    timeout: Duration,
}

impl ProxyProtocol {
    /// Requires the header of connections from `senders`.
    pub fn new(senders: impl IntoIterator<Item = Network>) -> Self {
        Self {
            senders: senders.into_iter().collect(),
            timeout: Duration::from_secs(5),
        }
    }

    /// Sets the time limit for the header. Default: 5 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn admits(&self, sender: IpAddr) -> bool {
        self.senders.iter().any(|network| network.contains(sender))
    }
}

/// The error of a connection that is closed before it is served.
#[derive(Debug)]
enum HeaderError {
    NotASender,
    NoHeader,
    TooLong,
    Invalid,
    TimedOut,
    Ended,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotASender => "its address is not one of the listener's senders",
            Self::NoHeader => "the connection does not begin with a header",
            Self::TooLong => "the header is too long",
            Self::Invalid => "the header is invalid",
            Self::TimedOut => "the header took too long",
            Self::Ended => "the connection ended within the header",
        })
    }
}

/// Reads the header of a connection. Returns the client's information, or `None` to close the connection: it has no
/// valid header, or its client has too many connections.
///
/// Cancel safe if the connection is dropped.
pub(crate) async fn receive<S: AsyncRead + Unpin>(
    socket: &mut S,
    protocol: &ProxyProtocol,
    mut info: ConnectionInfo,
    permit: &mut ConnectionPermit,
    worker: &Arc<WorkerShared>,
) -> Option<ConnectionInfo> {
    let sender = info.remote;
    let header = match sender {
        Some(sender) if protocol.admits(sender.ip()) => {
            let reading = read(socket);
            // A connection without a header holds a slot, so it has a time limit like a handshake.
            let within = handshake::within(
                reading,
                (Instant::now(), protocol.timeout),
                info.remote,
                worker,
            );
            within.await.unwrap_or(Err(HeaderError::TimedOut))
        }
        // Anyone else could claim to be any client.
        _ => Err(HeaderError::NotASender),
    };
    match header {
        Ok(Some(addresses)) => {
            info.remote = Some(canonical(addresses.source));
            info.local = Some(canonical(addresses.destination));
        }
        Ok(None) => {}
        Err(error) => {
            WorkerMetrics::add(&worker.metrics.proxy_header_failures);
            tracing::debug!(
                target: targets::SERVER,
                %error,
                ?sender,
                "a connection has no PROXY protocol header"
            );
            return None;
        }
    }
    // The limit per address is for clients: until here, all connections came from the load balancer.
    permit.count_client(info.remote?).then_some(info)
}

/// Reads a header and nothing after it. `None`: the header names no client.
async fn read(
    socket: &mut (impl AsyncRead + Unpin),
) -> Result<Option<ProxiedAddress>, HeaderError> {
    // The shortest header has more bytes.
    let mut header = vec![0; SIGNATURE.len()];
    fill(socket, &mut header, 0).await?;
    if header == SIGNATURE {
        header.resize(FIXED, 0);
        fill(socket, &mut header, SIGNATURE.len()).await?;
        let rest = usize::from(u16::from_be_bytes([header[FIXED - 2], header[FIXED - 1]]));
        if rest > LONGEST_REST {
            return Err(HeaderError::TooLong);
        }
        header.resize(FIXED + rest, 0);
        fill(socket, &mut header, FIXED).await?;
    } else if header.starts_with(GREETING) {
        // So many bytes are still to come at least as the end of the line lacks.
        while !header.ends_with(b"\r\n") {
            let missing = if header.ends_with(b"\r") { 1 } else { 2 };
            let begin = header.len();
            if begin + missing > LONGEST_LINE {
                return Err(HeaderError::TooLong);
            }
            header.resize(begin + missing, 0);
            fill(socket, &mut header, begin).await?;
            // A line feed alone ends no line, and what follows it may be the client's.
            if header[begin..].contains(&b'\n') && !header.ends_with(b"\r\n") {
                return Err(HeaderError::Invalid);
            }
        }
    } else {
        return Err(HeaderError::NoHeader);
    }
    parse(&header)
}

/// Reads the rest of `header` from `begin` on.
async fn fill(
    socket: &mut (impl AsyncRead + Unpin),
    header: &mut [u8],
    begin: usize,
) -> Result<(), HeaderError> {
    let read = socket.read_exact(&mut header[begin..]).await;
    read.map(drop).map_err(|_| HeaderError::Ended)
}

/// Parses a whole header.
fn parse(header: &[u8]) -> Result<Option<ProxiedAddress>, HeaderError> {
    let config = ParseConfig {
        include_tlvs: false,
        ..ParseConfig::default()
    };
    match ProxyHeader::parse(header, config) {
        Ok((parsed, length)) if length == header.len() => match parsed.proxied_address() {
            // A datagram is no connection.
            Some(addresses) if addresses.protocol != Protocol::Stream => Err(HeaderError::Invalid),
            addresses => Ok(addresses.cloned()),
        },
        _ => Err(HeaderError::Invalid),
    }
}

/// Shows IPv4 clients in the form of IPv6 as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Reads a header from the beginning of `bytes`. Returns the client that it names, and the bytes of the header; or
/// `None` if it is no header. For fuzzing.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn fuzz_proxy_header(bytes: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    use std::task::{Context, Poll, Waker};

    let mut rest = bytes;
    let read = {
        let mut reading = std::pin::pin!(read(&mut rest));
        match reading
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(read) => read,
            // The task's budget is used up, which needs a longer header than there is.
            Poll::Pending => return None,
        }
    };
    let client = read.ok()?.map(|addresses| addresses.source);
    Some((client, bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::limits::Limits;

    fn version2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut header = SIGNATURE.to_vec();
        header.extend([command, family]);
        header.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
        header.extend(rest);
        header
    }

    const V4: [u8; 12] = [192, 0, 2, 1, 10, 0, 0, 7, 0x12, 0x67, 0, 80];

    /// The client in a header, and what is left behind it.
    async fn read_all(bytes: &[u8]) -> (Result<Option<String>, String>, Vec<u8>) {
        let mut rest = bytes;
        let read = read(&mut rest).await;
        let client = read.map(|named| named.map(|addresses| addresses.source.to_string()));
        (client.map_err(|error| error.to_string()), rest.to_vec())
    }

    #[tokio::test]
    async fn headers_are_read_and_nothing_behind_them() {
        let mut with_extras = V4.to_vec();
        with_extras.extend(b"\x02\0\x09h.example");
        let v6: Vec<u8> = [[0x20, 1, 0xd, 0xb8], [0; 4], [0; 4], [0, 0, 0, 9]].concat();
        let v6 = [&v6[..], &v6, &[0, 1, 0, 2]].concat();
        for (header, client) in [
            (b"PROXY TCP4 192.0.2.1 10.0.0.7 4711 80\r\n".to_vec(), Some("192.0.2.1:4711")),
            (b"PROXY TCP6 2001:db8::9 ::1 4711 80\r\n".to_vec(), Some("[2001:db8::9]:4711")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (
                b"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"
                    .to_vec(),
                None,
            ),
            (version2(0x21, 0x11, &V4), Some("192.0.2.1:4711")),
            (version2(0x21, 0x11, &with_extras), Some("192.0.2.1:4711")),
            (version2(0x21, 0x21, &v6), Some("[2001:db8::9]:1")),
            (version2(0x20, 0, &[]), None),
            (version2(0x20, 0x11, &V4), None),
            (version2(0x21, 0, &[]), None),
            (version2(0x21, 0x31, &[0; 216]), None),
        ] {
            for behind in [&b""[..], b"GET / HTTP/1.1\r\n", b"\r\n", b"\x16\x03"] {
                let bytes = [&header[..], behind].concat();
                let expected = Ok(client.map(str::to_owned));
                assert_eq!(
                    read_all(&bytes).await,
                    (expected, behind.to_vec()),
                    "{}",
                    header.escape_ascii()
                );
            }
            // Every part of it is waited for.
            for length in 0..header.len() {
                let (read, _) = read_all(&header[..length]).await;
                assert_eq!(read, Err(HeaderError::Ended.to_string()), "{length}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_rejected_after_a_bounded_number_of_bytes() {
        let line = |text: &str| text.as_bytes().to_vec();
        for bytes in [
            line("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
            line("\x16\x03\x01\x02\0\x01\0\x01\u{1}\x03\x03\x10"),
            line("PROXY\tTCP4 192.0.2.1 10.0.0.7 4711 80\r\n"),
            line("proxy TCP4 192.0.2.1 10.0.0.7 4711 80\r\n"),
            line("PROXY TCP5 192.0.2.1 10.0.0.7 4711 80\r\n"),
            line("PROXY TCP4 192.0.2.1 10.0.0.7 4711\r\n\r\n"),
            line("PROXY TCP4 192.0.2.1 10.0.0.7 4711 80 \r\n"),
            line("PROXY TCP4 192.0.2.256 10.0.0.7 4711 80\r\n"),
            line("PROXY TCP4 192.0.2.1 10.0.0.7 4711 99999\r\n"),
            line("PROXY TCP4 2001:db8::9 ::1 4711 80\r\n"),
            line("PROXY TCP4 192.0.2.1 10.0.0.7 4711 80\nGET / HTTP/1.1\r\n\r\n"),
            line(&format!("PROXY TCP4 {}", "1".repeat(500))),
            version2(0x11, 0x11, &V4),
            version2(0x22, 0x11, &V4),
            version2(0x21, 0x12, &V4),
            version2(0x21, 0x41, &V4),
            version2(0x21, 0x11, &V4[..11]),
            version2(0x21, 0x31, &V4),
            version2(0x21, 0x11, &[0; LONGEST_REST + 1]),
        ] {
            let sent = [&bytes[..], &[b'x'; 8000]].concat();
            let (read, rest) = read_all(&sent).await;
            assert!(read.is_err(), "{}", bytes.escape_ascii());
            assert_ne!(read, Err(HeaderError::Ended.to_string()));
            let taken = sent.len() - rest.len();
            assert!(
                taken <= bytes.len().max(FIXED),
                "{taken} of {}",
                bytes.len()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_no_header_is_closed_in_time() {
        let worker = WorkerShared::new(Limits::default(), 8, Arc::default(), None);
        let worker = Arc::new(worker);
        let protocol = ProxyProtocol::new(["10.0.0.0/8".parse().unwrap()]);
        for (sender, seconds) in [("10.0.0.1:80", 5), ("192.0.2.1:80", 0)] {
            let begin = Instant::now();
            let (mut client, mut socket) = tokio::io::duplex(64);
            tokio::io::AsyncWriteExt::write_all(&mut client, b"PROXY TCP4 192.")
                .await
                .unwrap();
            let info = ConnectionInfo::new(sender.parse().unwrap());
            let mut permit = worker.enter();
            let received = receive(&mut socket, &protocol, info, &mut permit, &worker).await;
            assert!(received.is_none());
            assert_eq!(begin.elapsed().as_secs(), seconds, "{sender}");
        }
        let failures = worker
            .metrics
            .proxy_header_failures
            .load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(failures, 2);
    }
}
