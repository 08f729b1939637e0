//! A proxy made with Pingora: `HTTP-PORT H2C-PORT WORKERS ORIGIN…`, with origins as `127.0.0.1:4711`.
//!
//! Round robin, which is cheaper than the choice of two. Stops at once on SIGINT.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pingora_core::apps::HttpServerOptions;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

const USAGE: &str = "usage: competitor-pingora HTTP-PORT H2C-PORT WORKERS ORIGIN...";

struct Balanced {
    origins: Vec<SocketAddr>,
    next: AtomicUsize,
}

#[async_trait]
impl ProxyHttp for Balanced {
    type CTX = ();

    fn new_ctx(&self) -> Self::CTX {}

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        _context: &mut (),
    ) -> pingora_core::Result<Box<HttpPeer>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let origin = self.origins[turn % self.origins.len()];
        Ok(Box::new(HttpPeer::new(origin, false, String::new())))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        _context: &mut (),
    ) -> pingora_core::Result<()> {
        if let Some(client) = session.client_addr().and_then(|address| address.as_inet()) {
            request.insert_header("X-Forwarded-For", client.ip().to_string())?;
        }
        request.insert_header("X-Forwarded-Proto", "http")?;
        // An HTTP/2 request has its host in the target; upstream HTTP/1.1 requires the header.
        let host = request.headers.get("Host").cloned().or_else(|| {
            let authority = request.uri.authority()?;
            authority.as_str().parse().ok()
        });
        if let Some(host) = host {
            request.insert_header("X-Forwarded-Host", &host)?;
            request.insert_header("Host", &host)?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || {
        arguments
            .next()
            .ok_or(USAGE)?
            .parse::<u16>()
            .map_err(Box::<dyn Error>::from)
    };
    let (http, h2c, workers) = (number()?, number()?, number()?);
    let origins = arguments
        .map(|origin| origin.parse())
        .collect::<Result<Vec<SocketAddr>, _>>()?;
    if origins.is_empty() {
        return Err(USAGE.into());
    }
    let configuration = ServerConf {
        threads: workers.into(),
        upstream_keepalive_pool_size: 1024,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, configuration);
    server.bootstrap();
    for (port, prior_knowledge) in [(http, false), (h2c, true)] {
        let balanced = Balanced {
            origins: origins.clone(),
            next: AtomicUsize::new(0),
        };
        let mut service = http_proxy_service(&server.configuration, balanced);
        let mut options = HttpServerOptions::default();
        options.h2c = prior_knowledge;
        if let Some(application) = service.app_logic_mut() {
            application.server_options = Some(options);
        }
        service.add_tcp(&format!("127.0.0.1:{port}"));
        server.add_service(service);
    }
    server.run_forever();
}
