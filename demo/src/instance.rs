//! One replica of one of the demo's services: a real HTTP server on its own port.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

/// A running replica. Dropping it stops the server and closes its connections, like a crash.
#[derive(Debug)]
pub(crate) struct Instance {
    about: Arc<About>,
    address: SocketAddr,
    server: AbortHandle,
}

/// The identity and state of a replica.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) service: String,
    /// The name or the keys of the partition. `None` if the service has only one.
    pub(crate) partition: Option<String>,
    pub(crate) version: String,
    pub(crate) node: Arc<str>,
    /// True if probes get 503. The replica still serves requests.
    pub(crate) is_ill: AtomicBool,
}

impl Instance {
    /// Starts a replica on a free port of the loopback interface.
    pub(crate) async fn start(about: About) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let about = Arc::new(about);
        let server = tokio::spawn(serve(listener, Arc::clone(&about))).abort_handle();
        Ok(Self {
            about,
            address,
            server,
        })
    }

    pub(crate) fn service(&self) -> &str {
        &self.about.service
    }

    /// Lets the replica respond to its health probes with 503, or with 200 again.
    pub(crate) fn set_ill(&self, ill: bool) {
        self.about.is_ill.store(ill, Ordering::Relaxed);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, about: Arc<About>) {
    // Dropping the set closes the connections together with the listener.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let about = Arc::clone(&about);
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let response = about.answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            // The error of a disconnected client concerns no one.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

impl About {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() == "/health" {
            return if self.is_ill.load(Ordering::Relaxed) {
                text(StatusCode::SERVICE_UNAVAILABLE, "the demo made me ill\n")
            } else {
                text(StatusCode::OK, "healthy\n")
            };
        }
        let forwarded = |name| first_value(request.headers(), name);
        let mut body = json!({
            "service": self.service,
            "version": self.version,
            "node": &*self.node,
            "method": request.method().as_str(),
            "path": request.uri().path_and_query().map_or("/", |p| p.as_str()),
            "forwarded": {
                "for": forwarded("x-forwarded-for"),
                "host": forwarded("x-forwarded-host"),
                "proto": forwarded("x-forwarded-proto"),
            },
        });
        if let Some(partition) = &self.partition {
            body["partition"] = json!(partition);
        }
        let mut response = Response::new(Full::from(format!("{body:#}\n")));
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("application/json"),
        );
        response
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}

fn first_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}
