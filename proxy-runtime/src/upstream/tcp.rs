//! One connection out of several addresses.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Time after which the next address is tried in parallel (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Interval between TCP keep-alive probes.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Connects to the first of `addresses` that responds. The next attempt starts when one fails, or after 250 ms in
/// parallel. The system sends keep-alive probes after `keep_alive` without data.
///
/// Cancel-safe: if dropped, it closes all attempts.
///
/// # Errors
///
/// All attempts failed; the error is that of the last.
pub(super) async fn connect(
    addresses: Vec<SocketAddr>,
    keep_alive: Option<Duration>,
) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut stagger = pin!(sleep(STAGGER));
    attempts.extend(waiting.next().map(TcpStream::connect));
    let mut failure = None;
    loop {
        tokio::select! {
            // A connection that is ready wins over a further attempt.
            biased;
            done = attempts.next() => match done {
                Some(Ok(stream)) => {
                    // Messages are written in one piece, so Nagle's algorithm would only delay them.
                    stream.set_nodelay(true)?;
                    if let Some(silence) = keep_alive {
                        keep_alive_after(&stream, silence);
                    }
                    return Ok(stream);
                }
                Some(Err(error)) => {
                    failure = Some(error);
                    attempts.extend(waiting.next().map(TcpStream::connect));
                    stagger.as_mut().reset(Instant::now() + STAGGER);
                }
                None => {
                    return Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()));
                }
            },
            () = stagger.as_mut(), if waiting.len() > 0 => {
                attempts.extend(waiting.next().map(TcpStream::connect));
                stagger.as_mut().reset(Instant::now() + STAGGER);
            }
        }
    }
}

/// Sets TCP keep-alive. Errors are ignored, because the connection works without it.
fn keep_alive_after(stream: &TcpStream, silence: Duration) {
    let settings = TcpKeepalive::new()
        .with_time(silence)
        .with_interval(KEEP_ALIVE_INTERVAL);
    let _ = SockRef::from(stream).set_tcp_keepalive(&settings);
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_rejected_address_is_followed_by_the_next() {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refusing = gone.local_addr().unwrap();
        drop(gone);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = connect(vec![refusing, refusing, open], None).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        let error = connect(vec![refusing], None).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn silence_is_asked_about_as_the_caller_says() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let stream = connect(vec![open], Some(Duration::from_secs(7))).await;
        let stream = stream.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        #[cfg(target_os = "linux")]
        {
            let seconds = Duration::from_secs;
            assert_eq!(socket.tcp_keepalive_time().unwrap(), seconds(7));
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), seconds(10));
        }
        let stream = connect(vec![open], None).await.unwrap();
        assert!(!SockRef::from(&stream).keepalive().unwrap());
    }

    #[tokio::test]
    async fn no_address_is_an_error() {
        assert_eq!(
            connect(Vec::new(), None).await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
