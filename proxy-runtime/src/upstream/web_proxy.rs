//! Forward proxies: tunnels through them, and their additions to the heads of requests.

use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proxy_model::compiled::{DestinationAddress, WebProxy};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest head that a forward proxy may answer with.
const MAX_HEAD: usize = 8 * 1024;

/// The reason why there is no connection through a forward proxy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebProxyError {
    #[error("its name cannot be resolved")]
    Resolve(#[source] Arc<io::Error>),
    #[error("it cannot be connected to")]
    Connect(#[source] Arc<io::Error>),
    #[error("the connection to it has failed")]
    Broken(#[source] io::Error),
    #[error("it has closed the connection without an answer")]
    Closed,
    #[error("its answer is no head of HTTP/1.1, or has more than {MAX_HEAD} bytes")]
    Malformed,
    #[error("it wants other credentials than those of the cluster's `WebProxy` (407)")]
    Unauthorized,
    #[error("it has answered with {0}")]
    Rejected(u16),
}

/// The parts of a request's head that a forward proxy requires.
#[derive(Debug)]
pub(crate) struct AbsoluteForm {
    /// Scheme and authority.
    pub(super) prefix: Vec<u8>,
    /// Lines of the head.
    pub(super) lines: Vec<u8>,
}

impl WebProxyError {
    /// Returns true if the error concerns the destination, false if only the forward proxy.
    pub(super) fn is_of_destination(&self) -> bool {
        // With 5xx the forward proxy reports that it could not reach the destination. Other errors are its own.
        matches!(self, Self::Rejected(500..))
    }
}

impl AbsoluteForm {
    /// Creates the parts that `proxy` requires in requests to the destination at this address.
    pub(super) fn new(proxy: &WebProxy, address: &DestinationAddress) -> Self {
        let mut prefix = Vec::from(address.scheme().as_str());
        prefix.extend_from_slice(b"://");
        prefix.extend_from_slice(address.authority().as_bytes());
        let mut lines = Vec::new();
        write_credentials(proxy, &mut lines);
        Self { prefix, lines }
    }

    /// Adds the parts to a head: the target becomes absolute, without a path for `*` (RFC 9112 section 3.2.4), and the
    /// lines follow the first.
    #[cold]
    pub(super) fn add_to(&self, head: &mut Vec<u8>) {
        let Some((target, lines)) = places(head) else {
            return;
        };
        // The later one first, so that the place of the other stays what it is.
        head.splice(lines..lines, self.lines.iter().copied());
        let replaced = usize::from(head[target] == b'*');
        head.splice(target..target + replaced, self.prefix.iter().copied());
    }

    /// Removes the parts that were [added](Self::add_to).
    #[cold]
    pub(super) fn remove_from(&self, head: &mut Vec<u8>) {
        let Some((target, lines)) = places(head) else {
            return;
        };
        if head[lines..].starts_with(&self.lines) {
            head.drain(lines..lines + self.lines.len());
        }
        if head[target..].starts_with(&self.prefix) {
            let is_path = head[target + self.prefix.len()] == b'/';
            let left: &[u8] = match is_path {
                true => b"",
                false => b"*",
            };
            head.splice(target..target + self.prefix.len(), left.iter().copied());
        }
    }
}

/// The places of the target, and of the second line.
fn places(head: &[u8]) -> Option<(usize, usize)> {
    let target = head.iter().position(|byte| *byte == b' ')? + 1;
    let line = head.windows(2).position(|end| end == b"\r\n")? + 2;
    Some((target, line))
}

fn write_credentials(proxy: &WebProxy, out: &mut Vec<u8>) {
    if let Some(credentials) = proxy.credentials() {
        out.extend_from_slice(b"proxy-authorization: Basic ");
        out.extend_from_slice(STANDARD.encode(credentials).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Opens a tunnel through `proxy` to the destination at this address.
///
/// Reads nothing after the head of the response: that is data of the destination.
pub(super) async fn connect<S>(
    stream: &mut S,
    proxy: &WebProxy,
    address: &DestinationAddress,
) -> Result<(), WebProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let host = match address.host() {
        // An IPv6 address has brackets in a target (RFC 3986 section 3.2.2).
        v6 if v6.contains(':') => format!("[{v6}]"),
        host => host.to_owned(),
    };
    let target = format!("{host}:{}", address.port());
    let mut head = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n").into_bytes();
    write_credentials(proxy, &mut head);
    head.extend_from_slice(b"\r\n");
    stream
        .write_all(&head)
        .await
        .map_err(WebProxyError::Broken)?;
    stream.flush().await.map_err(WebProxyError::Broken)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_HEAD {
            return Err(WebProxyError::Malformed);
        }
        // Byte by byte, since bytes after the head belong to the destination.
        match stream.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(WebProxyError::Closed);
            }
            Err(error) => return Err(WebProxyError::Broken(error)),
        }
        // An answer of another protocol may have no end.
        if !begins_like_http(&answer) {
            return Err(WebProxyError::Malformed);
        }
    }
    match status(&answer).ok_or(WebProxyError::Malformed)? {
        200..=299 => Ok(()),
        407 => Err(WebProxyError::Unauthorized),
        status => Err(WebProxyError::Rejected(status)),
    }
}

fn begins_like_http(answer: &[u8]) -> bool {
    const BEGIN: &[u8] = b"HTTP/1.";
    let known = answer.len().min(BEGIN.len());
    answer[..known] == BEGIN[..known]
}

/// The status of a head: `HTTP/1.1 200 Connection established`.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let (version, rest) = str::from_utf8(line).ok()?.split_once(' ')?;
    let code = rest.split(' ').next()?;
    let is_code = code.len() == 3 && code.bytes().all(|b| b.is_ascii_digit());
    (["HTTP/1.0", "HTTP/1.1"].contains(&version) && is_code)
        .then(|| code.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proxy_model::Snapshot;

    use super::*;

    #[test]
    fn a_head_in_absolute_form_is_made_and_unmade() {
        let absolute = AbsoluteForm {
            prefix: b"http://d.example:81".to_vec(),
            lines: b"proxy-authorization: Basic eA==\r\n".to_vec(),
        };
        for (line, expected) in [
            ("GET /a?b HTTP/1.1", "GET http://d.example:81/a?b HTTP/1.1"),
            ("GET / HTTP/1.1", "GET http://d.example:81/ HTTP/1.1"),
            ("OPTIONS * HTTP/1.1", "OPTIONS http://d.example:81 HTTP/1.1"),
        ] {
            let head = format!("{line}\r\nHost: h\r\n\r\n");
            let mut made = head.clone().into_bytes();
            absolute.add_to(&mut made);
            let expected =
                format!("{expected}\r\nproxy-authorization: Basic eA==\r\nHost: h\r\n\r\n");
            assert_eq!(String::from_utf8_lossy(&made), expected);
            absolute.remove_from(&mut made);
            assert_eq!(String::from_utf8_lossy(&made), head);
        }
    }
    use crate::fixtures::snapshot;

    fn through(proxy: &str, destination: &str) -> Arc<Snapshot> {
        snapshot(&format!(
            r#"{{"Clusters":{{"c":{{"HttpClient":{{"WebProxy":{{"Address":"{proxy}"}}}},
                "Destinations":{{"d":{{"Address":"{destination}"}}}}}}}}}}"#
        ))
    }

    /// A request and the result of this answer.
    async fn asked(
        proxy: &str,
        destination: &str,
        answer: &[u8],
    ) -> (String, Result<Vec<u8>, String>) {
        let snapshot = through(proxy, destination);
        let cluster = &snapshot.clusters()[0];
        let address = cluster.destinations()[0].address();
        let proxy = cluster.upstream().web_proxy(address).unwrap();
        let (mut near, mut far) = tokio::io::duplex(64 * 1024);
        far.write_all(answer).await.unwrap();
        let connected = connect(&mut near, proxy, address);
        let connected = match connected.await {
            Ok(()) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        // The end of both directions.
        let mut asked = vec![0; 1024];
        let length = far.read(&mut asked).await.unwrap();
        asked.truncate(length);
        drop(far);
        let mut rest = Vec::new();
        near.read_to_end(&mut rest).await.unwrap();
        (String::from_utf8(asked).unwrap(), connected.map(|()| rest))
    }

    #[tokio::test]
    async fn a_tunnel_is_asked_for_by_host_and_port() {
        const ANSWER: &[u8] = b"HTTP/1.1 200 Connection established\r\nx-a: b\r\n\r\n\x16early";
        for (proxy, destination, expected) in [
            (
                "http://proxy:3128",
                "https://d.example/base",
                "CONNECT d.example:443 HTTP/1.1\r\nhost: d.example:443\r\n\r\n",
            ),
            (
                "http://u:p%20w@proxy:3128",
                "https://[2001:db8::1]:8443/",
                "CONNECT [2001:db8::1]:8443 HTTP/1.1\r\nhost: [2001:db8::1]:8443\r\n\
                 proxy-authorization: Basic dTpwIHc=\r\n\r\n",
            ),
        ] {
            let (asked, connected) = asked(proxy, destination, ANSWER).await;
            assert_eq!(asked, expected);
            assert_eq!(
                connected.unwrap(),
                b"\x16early",
                "what follows is the destination's"
            );
        }
    }

    #[tokio::test]
    async fn answers_that_open_no_tunnel_are_errors() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(MAX_HEAD));
        for (answer, expected) in [
            (
                &b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"[..],
                "407",
            ),
            (b"HTTP/1.0 503 Service Unavailable\r\n\r\n", "503"),
            (b"HTTP/1.1 403\r\n\r\n", "403"),
            (b"HTTP/1.1 20 OK\r\n\r\n", "no head of HTTP/1.1"),
            (b"HTTP/2.0 200 OK\r\n\r\n", "no head of HTTP/1.1"),
            (b"SSH-2.0-OpenSSH\r\n", "no head of HTTP/1.1"),
            (long.as_bytes(), "no head of HTTP/1.1"),
        ] {
            let (_, connected) = asked("http://u:secret@proxy/", "https://d/", answer).await;
            let error = connected.unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_proxy_that_goes_away_is_an_error() {
        let snapshot = through("http://proxy/", "https://d/");
        let cluster = &snapshot.clusters()[0];
        let address = cluster.destinations()[0].address();
        let proxy = cluster.upstream().web_proxy(address).unwrap();
        let (mut near, mut far) = tokio::io::duplex(1024);
        far.write_all(b"HTTP/1.1 2").await.unwrap();
        far.shutdown().await.unwrap();
        let error = connect(&mut near, proxy, address).await.unwrap_err();
        assert!(matches!(error, WebProxyError::Closed), "{error}");
    }
}
