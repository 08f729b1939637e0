//! Finds out which protocol a cleartext client speaks.

use bytes::Bytes;

use super::io::Transport;
use super::state::Protocol;
use crate::server::shared::WorkerShared;

/// What a client said first.
pub(super) struct Opening {
    pub(super) protocol: Protocol,
    /// The bytes that were read to find out.
    pub(super) bytes: Bytes,
}

/// Reads as much as it takes. `None` when the client went away or said nothing in time.
#[cfg(feature = "http2")]
pub(super) async fn read<T: Transport>(
    mut transport: T,
    worker: &WorkerShared,
) -> Option<(T, Opening)> {
    use tokio::time::sleep;

    use crate::server::metrics::WorkerMetrics;
    use crate::server::shared::Mode;

    let mut mode = worker.watch_mode();
    let leaving = async {
        if mode.wait_for(|mode| *mode != Mode::Serving).await.is_ok() {
            sleep(worker.limits.closing_grace).await;
        }
    };
    tokio::select! {
        biased;
        opening = detect(&mut transport) => Some((transport, opening?)),
        () = sleep(worker.limits.header_timeout) => {
            WorkerMetrics::add(&worker.metrics.header_timeouts);
            None
        }
        () = leaving => None,
    }
}

/// Without HTTP/2 there is nothing to find out.
#[cfg(not(feature = "http2"))]
#[expect(clippy::unused_async, reason = "the same signature as with HTTP/2")]
pub(super) async fn read<T: Transport>(transport: T, _: &WorkerShared) -> Option<(T, Opening)> {
    let opening = Opening {
        protocol: Protocol::Http1,
        bytes: Bytes::new(),
    };
    Some((transport, opening))
}

#[cfg(feature = "http2")]
async fn detect<T: Transport>(transport: &mut T) -> Option<Opening> {
    use tokio::io::AsyncReadExt;

    /// Begins HTTP/2, and no HTTP/1 request (RFC 9113 section 3.4).
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    // Most often the whole of the first request comes at once.
    let mut buffer = [0; 1024];
    let mut filled = 0;
    while filled < PREFACE.len() {
        let read = transport.read(&mut buffer[filled..]).await.ok()?;
        filled += read;
        let begin = &buffer[..filled.min(PREFACE.len())];
        if read == 0 && filled == 0 {
            return None;
        }
        if read == 0 || !PREFACE.starts_with(begin) {
            return Some(Opening {
                protocol: Protocol::Http1,
                bytes: Bytes::copy_from_slice(&buffer[..filled]),
            });
        }
    }
    Some(Opening {
        protocol: Protocol::Http2,
        bytes: Bytes::copy_from_slice(&buffer[..filled]),
    })
}
