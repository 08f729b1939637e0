use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use hyper::service::Service;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::Incoming;
use super::builder::Handler;
use super::protocols::HttpSettings;
use crate::body::Body;
use crate::tasks::Spawner;
use crate::traffic::Traffic;

/// The connection of a request, in the extensions of the request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// 0 for the first connection that the origin accepted.
    pub id: u64,
    /// The remote address.
    pub peer: SocketAddr,
    /// The server name that the client sent by SNI.
    pub server_name: Option<String>,
    /// The protocol that ALPN chose.
    pub alpn: Option<String>,
    /// The certificate that the client presented.
    pub client_certificate: Option<CertificateDer<'static>>,
}

/// The state that all connections of an origin share.
#[derive(Clone)]
pub(super) struct Serve {
    pub(super) handler: Handler,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) http: HttpSettings,
    pub(super) spawner: Spawner,
    pub(super) traffic: Traffic,
    pub(super) drain: watch::Receiver<()>,
}

/// Serves an accepted connection to its end. Its errors are visible to the client.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, mut serve: Serve) {
    // Before the connection is counted: a test that sees the count may drain it, and earlier drains
    // do not apply.
    serve.drain.mark_unchanged();
    let open = serve.traffic.connection();
    // Small writes are sent at once, so that tests see them one by one.
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
    let service = OriginService {
        handler: Arc::clone(&serve.handler),
        traffic: serve.traffic.clone(),
        info,
    };
    let (spawner, drain) = (serve.spawner.clone(), serve.drain.clone());
    serve.http.serve(stream, service, spawner, drain).await;
}

/// The handler as used by one connection.
pub(super) struct OriginService {
    handler: Handler,
    traffic: Traffic,
    info: ConnectionInfo,
}

impl Service<Request<Incoming>> for OriginService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.traffic.request();
        request.extensions_mut().insert(self.info.clone());
        let answer = (self.handler)(request);
        Box::pin(async move { Ok(answer.await) })
    }
}
