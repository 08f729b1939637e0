use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;

use http::Request;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::Incoming;
use super::builder::Handler;
use crate::tasks::Spawner;
use crate::traffic::Traffic;

/// What an origin knows about the connection that a request came on; found in the request's extensions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// 0 for the first connection that the origin accepted.
    pub id: u64,
    /// The other end.
    pub peer: SocketAddr,
    /// The name that the client asked for by SNI.
    pub server_name: Option<String>,
    /// The protocol that ALPN agreed on.
    pub alpn: Option<String>,
    /// The certificate that the client showed.
    pub client_certificate: Option<CertificateDer<'static>>,
}

/// What every connection of an origin shares.
#[derive(Clone)]
pub(super) struct Serve {
    pub(super) handler: Handler,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) http: auto::Builder<Spawner>,
    pub(super) traffic: Traffic,
    pub(super) drain: watch::Receiver<bool>,
}

/// Serves one accepted connection to its end. Its errors are the client's to see.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, serve: Serve) {
    let open = serve.traffic.connection();
    // Small writes are sent as they are made, so that tests see them one by one.
    let _ = stream.set_nodelay(true);
    let mut info = ConnectionInfo {
        id: open.id,
        peer,
        server_name: None,
        alpn: None,
        client_certificate: None,
    };
    let Some(acceptor) = &serve.acceptor else {
        return serve_http(stream, info, &serve).await;
    };
    match acceptor.accept(stream).await {
        Ok(stream) => {
            let (_, tls) = stream.get_ref();
            info.server_name = tls.server_name().map(str::to_owned);
            info.alpn = tls
                .alpn_protocol()
                .map(|name| String::from_utf8_lossy(name).into_owned());
            info.client_certificate = tls
                .peer_certificates()
                .and_then(|chain| chain.first())
                .map(|certificate| certificate.clone().into_owned());
            serve_http(stream, info, &serve).await;
        }
        Err(_) => serve.traffic.failed_handshake(),
    }
}

async fn serve_http<S>(stream: S, info: ConnectionInfo, serve: &Serve)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|mut request: Request<Incoming>| {
        serve.traffic.request();
        request.extensions_mut().insert(info.clone());
        let answer = (serve.handler)(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = pin!(
        serve
            .http
            .serve_connection_with_upgrades(TokioIo::new(stream), service)
    );
    let mut drain = serve.drain.clone();
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = drain.wait_for(|draining| *draining) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
