//! HTTP/1.1 to the emulated cluster: plain, and only on this machine.
//!
//! The provider has its own transport, over reqwest with TLS. The demo avoids it, since both take longer to
//! build than everything else here.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_servicefabric::client::{Transport, TransportError, TransportErrorKind};
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A transport with a connection for each request.
#[derive(Debug)]
pub(crate) struct PlainTransport;

#[async_trait]
impl Transport for PlainTransport {
    async fn send(
        &self,
        mut request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        let connect = |error: io::Error| {
            TransportError::new(TransportErrorKind::Connect, "cannot connect").with_source(error)
        };
        let interrupted = |error: hyper::Error| {
            TransportError::new(TransportErrorKind::Interrupted, "the exchange broke off")
                .with_source(error)
        };
        let authority = request
            .uri()
            .authority()
            .cloned()
            .ok_or_else(|| connect(io::Error::other("the URI has no authority")))?;
        let host = authority
            .as_str()
            .parse()
            .map_err(|error| connect(io::Error::other(error)))?;
        request.headers_mut().insert(header::HOST, host);
        // Origin form: a server may reject an absolute URI.
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);

        let stream = TcpStream::connect(authority.as_str())
            .await
            .map_err(connect)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(interrupted)?;
        // Dropped with this future, so that a cancelled request ends.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let response = sender
            .send_request(request.map(Full::new))
            .await
            .map_err(interrupted)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, max_body)
            .collect()
            .await
            .map_err(|error| {
                let kind = match error.is::<LengthLimitError>() {
                    true => TransportErrorKind::TooLarge,
                    false => TransportErrorKind::Interrupted,
                };
                TransportError::new(kind, "the response cannot be read").with_source(error)
            })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Sends a request to a server that responds with `response`. Returns the result and the received
    /// request.
    async fn exchange(
        response: &'static str,
    ) -> (Result<Response<Bytes>, TransportErrorKind>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = vec![0; 1024];
            let length = stream.read(&mut received).await.unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&received[..length]).into_owned()
        };
        let uri = format!("http://{address}/Nodes?api-version=6.0");
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        let (sent, received) = tokio::join!(PlainTransport.send(request, 4), server);
        (sent.map_err(|error| error.kind()), received)
    }

    #[tokio::test]
    async fn a_response_is_read_up_to_its_limit() {
        let (response, received) =
            exchange("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour").await;
        assert_eq!(response.unwrap().body(), "four");
        assert!(
            received.starts_with("GET /Nodes?api-version=6.0 HTTP/1.1\r\nhost: 127.0.0.1:"),
            "{received}"
        );
        let (response, _) = exchange("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfives").await;
        assert_eq!(response.unwrap_err(), TransportErrorKind::TooLarge);
    }

    #[tokio::test]
    async fn errors_have_kinds() {
        let (response, _) = exchange("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfo").await;
        assert_eq!(response.unwrap_err(), TransportErrorKind::Interrupted);
        let free = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let request = Request::get(format!("http://{free}/"))
            .body(Bytes::new())
            .unwrap();
        let error = PlainTransport.send(request, 4).await.unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Connect);
    }
}
