//! The memory of an idle connection, and of a tunnel whose client does not read.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::Proxy;
use crate::server::memory::{TLS_BUFFER, TUNNEL_BUFFERS};
use crate::stream::ByteStream;

/// Most connections of a proxy are idle, so a few hundred bytes are what it is about.
#[tokio::test]
async fn an_idle_connection_is_small() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let Bench { worker, .. } = Bench::new(Limits::default());
    let (proxy, _driver) = Proxy::builder().build().unwrap();
    let connection = serve_cleartext(
        stream,
        ConnectionInfo::new(address),
        Rc::new(Served::new(ProxyHandler::new(proxy.service()))),
        worker.enter(),
        worker,
    );
    let future = size_of_val(&connection);
    let state = size_of::<ConnectionState>();
    let timer = size_of::<tokio::time::Sleep>();
    let sum = future + state + timer;
    // With what the runtime adds to it, a task is a block of 1 KiB up to here.
    assert!(future <= 912, "{future} bytes");
    // Eight of them tell certificates of clients apart, eight the clients behind a trusted proxy, and eight lead
    // to the spans of a request that is traced.
    assert!(sum <= 1272, "{future} and {state} and {timer} bytes");
}

/// Takes what is written, as TLS does, and waits for its socket when it is flushed.
struct Buffering;

impl AsyncRead for Buffering {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Buffering {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl ByteStream for Buffering {}

impl Transport for Buffering {
    fn reset_on_drop(&self) {}

    fn lingers_on_close(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_tunnel_of_tls_holds_what_its_client_does_not_read_and_ends_for_it() {
    let each = TUNNEL_BUFFERS + TLS_BUFFER;
    let bench = Bench::with_memory(each);
    let cx = &mut Context::from_waker(Waker::noop());
    let open = || {
        let mut info = ConnectionInfo::new("192.0.2.7:4711".parse().unwrap());
        info.tls = true;
        let state = ConnectionState::new(Arc::clone(&bench.worker), info, Instant::now());
        state.tunnel.store(true, Relaxed);
        ConnectionIo::new(Buffering, state, bench.worker.enter())
    };
    let (mut first, mut second) = (open(), open());
    assert!(Pin::new(&mut first).poll_write(cx, b"hello").is_ready());
    assert_eq!(bench.held(), 0, "nobody waits");
    assert!(Pin::new(&mut first).poll_flush(cx).is_pending());
    assert_eq!(bench.held(), each);
    assert!(Pin::new(&mut second).poll_flush(cx).is_pending());
    let told = Pin::new(&mut first).poll_flush(cx);
    assert!(matches!(told, Poll::Ready(Err(_))), "{told:?}");
    drop((first, second));
    assert_eq!(bench.held(), 0);
}
