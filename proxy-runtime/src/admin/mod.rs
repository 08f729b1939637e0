//! The admin API and page: what the proxy does and why, to look at. It cannot change anything.
//!
//! | path | answers |
//! |---|---|
//! | `/` | a page for people |
//! | `/healthz` | 200 while the process lives |
//! | `/readyz` | 200 once every required source has had a valid configuration and the proxy serves it, else 503 and what is missing |
//! | `/metrics` | Prometheus text |
//! | `/api/v1/overview` | the state in one sentence, traffic, and the flow that the page draws |
//! | `/api/v1/routes?filter=&limit=` | routes with their traffic |
//! | `/api/v1/clusters?filter=&state=&limit=` | clusters with health and traffic |
//! | `/api/v1/clusters/{id}` | one cluster with its destinations |
//! | `/api/v1/providers` | the sources of the configuration and how they are doing |
//! | `/api/v1/config` | the configuration that serves, secrets left out |
//! | `/api/v1/problems` | everything that is wrong with the configuration |
//! | `/api/v1/changes` | the last configurations and what each changed |
//! | `/api/v1/explain?method=&url=&header=` | what would happen to a request |
//!
//! Answers are JSON with names in `snake_case`, ages and durations in seconds unless a name says otherwise. Names may be
//! added to `v1`; none is removed or changes its meaning.
//!
//! There is no authentication, so the address belongs on the loopback interface or a network of operators. Requests
//! must name the address they were sent to by IP address, `localhost`, or a name that was allowed with
//! [`AdminBuilder::host`]: a web page elsewhere could otherwise make a browser read the configuration (DNS rebinding).

mod assets;
mod cluster_list;
mod config_view;
mod explain_query;
mod flow;
mod overview;
mod places;
mod providers;
mod query;
mod respond;
mod route_list;
mod serve;
mod server_metrics;
mod source_metrics;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use discovery_core::Merged;
use http::{Method, Request, StatusCode, header};

use self::providers::Start;
use self::query::Query;
use self::respond::Answer;
use crate::proxy::Proxy;
use crate::server::{Limits, ServerMetrics};

/// The admin API and page of one proxy. Cheap to clone.
///
/// [`respond`](Self::respond) answers one request and can be mounted in any HTTP server;
/// [`serve`](Self::serve) is a small server of its own.
#[derive(Clone)]
pub struct Admin {
    inner: Arc<Inner>,
}

struct Inner {
    proxy: Proxy,
    merged: Option<Arc<Merged>>,
    hosts: Vec<String>,
    started: Instant,
    server: Option<Arc<ServerMetrics>>,
    /// Those of the server that requests would come to.
    limits: Limits,
    dropped_lines: Vec<DroppedLines>,
    draining: AtomicBool,
    /// The proxy has served what all required sources have given.
    has_started: AtomicBool,
    /// Connections that were closed to make room.
    evicted: Arc<AtomicU64>,
}

/// The name of a log, and the number of its lines that are missing.
type DroppedLines = (&'static str, Box<dyn Fn() -> u64 + Send + Sync>);

/// Makes an [`Admin`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct AdminBuilder {
    inner: Inner,
}

impl Admin {
    /// Begins to make the admin API of `proxy`.
    pub fn builder(proxy: Proxy) -> AdminBuilder {
        AdminBuilder {
            inner: Inner {
                proxy,
                merged: None,
                hosts: Vec::new(),
                started: Instant::now(),
                server: None,
                limits: Limits::default(),
                dropped_lines: Vec::new(),
                draining: AtomicBool::new(false),
                has_started: AtomicBool::new(false),
                evicted: Arc::default(),
            },
        }
    }

    /// Makes `/readyz` say that the proxy is about to stop, so that nobody sends it new clients.
    pub fn set_draining(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    /// Answers one request. Never waits: the answer is a look at the state of this moment.
    pub fn respond<B>(&self, request: &Request<B>) -> http::Response<bytes::Bytes> {
        let admin = &*self.inner;
        if let Err(refusal) = admin.check_host(request) {
            return refusal.into_response(false);
        }
        let head_only = request.method() == Method::HEAD;
        if !head_only && request.method() != Method::GET {
            return Answer::error(
                StatusCode::METHOD_NOT_ALLOWED,
                "the admin API can only be read",
            )
            .with_header(header::ALLOW, "GET, HEAD")
            .into_response(false);
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        admin
            .answer(request.uri().path(), &query)
            .into_response(head_only)
    }
}

impl AdminBuilder {
    /// Shows where the configuration comes from: providers, problems, readiness. Without it the proxy counts as ready
    /// and its configuration as handed over by the program. Once the merge is ready, its snapshots are to be those of the proxy,
    /// unchanged: that one serves is how readiness is noticed.
    pub fn merged(mut self, merged: Arc<Merged>) -> Self {
        self.inner.merged = Some(merged);
        self
    }

    /// Lets requests name the address by this host name. IP addresses and `localhost` are always allowed.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.inner.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Adds what the server counts to `/metrics`.
    pub fn server(mut self, metrics: Arc<ServerMetrics>) -> Self {
        self.inner.server = Some(metrics);
        self
    }

    /// Sets the limits of the server, by which `explain` rejects what the server rejects. Default: the server's defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.inner.limits = limits;
        self
    }

    /// Adds to `/metrics` how many lines of the log of this name are missing, because they were dropped or could not be written.
    pub fn dropped_lines(
        mut self,
        log: &'static str,
        count: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.inner.dropped_lines.push((log, Box::new(count)));
        self
    }

    /// Makes the admin API.
    pub fn build(self) -> Admin {
        Admin {
            inner: Arc::new(self.inner),
        }
    }
}

impl Inner {
    fn answer(&self, path: &str, query: &Query) -> Answer {
        match path {
            "/healthz" => Answer::text("ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => self.metrics(),
            "/api/v1/overview" => Answer::json(&overview::of(self)),
            "/api/v1/routes" => Answer::json(&route_list::of(self, query)),
            "/api/v1/clusters" => Answer::json(&cluster_list::of(self, query)),
            "/api/v1/providers" => Answer::json(&providers::of(self)),
            "/api/v1/config" => Answer::json(&config_view::of(&self.proxy.snapshot())),
            "/api/v1/problems" => Answer::json(&providers::problems(self)),
            "/api/v1/changes" => {
                Answer::json(&serde_json::json!({ "changes": self.proxy.history() }))
            }
            "/api/v1/explain" => explain_query::answer(self, query),
            _ => match path.strip_prefix("/api/v1/clusters/") {
                Some(id) => cluster_list::one(self, id),
                None => assets::answer(path),
            },
        }
    }

    fn readiness(&self) -> Answer {
        if self.draining.load(Ordering::Relaxed) {
            return Answer::text("not ready: stopping\n")
                .with_status(StatusCode::SERVICE_UNAVAILABLE);
        }
        match self.start() {
            Start::Ready => Answer::text("ready\n"),
            start => Answer::text(format!("not ready: {start}\n"))
                .with_status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    fn metrics(&self) -> Answer {
        let refused = self
            .merged
            .as_ref()
            .map_or(0, |merged| merged.state().refusals);
        let text = self.proxy.collector().refused_before(refused).to_text();
        let mut text = text.trim_end().trim_end_matches("# EOF").to_owned();
        if let Some(server) = &self.server {
            server_metrics::write(&server.counts(), &mut text);
        }
        server_metrics::write_evicted(self.evicted.load(Ordering::Relaxed), &mut text);
        let dropped = self.dropped_lines.iter();
        server_metrics::write_dropped_lines(dropped.map(|(log, count)| (*log, count())), &mut text);
        let sources = self.merged.as_ref().map(|merged| merged.providers());
        let sources = sources.unwrap_or_default();
        if self.merged.is_some() {
            source_metrics::write(&sources, &mut text);
        }
        let names = sources.iter().map(|source| &*source.name);
        source_metrics::write_problems(names, self.all_problems(), &mut text);
        text.push_str("# EOF\n");
        Answer::text(text).with_header(
            header::CONTENT_TYPE,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )
    }

    /// Refuses requests that a page elsewhere made a browser send.
    fn check_host<B>(&self, request: &Request<B>) -> Result<(), Answer> {
        let named = request.uri().host().map(str::to_owned).or_else(|| {
            let value = request.headers().get(header::HOST)?.to_str().ok()?;
            let authority: http::uri::Authority = value.parse().ok()?;
            Some(authority.host().to_owned())
        });
        // HTTP/1.0 without a Host is no browser's.
        let Some(host) = named else { return Ok(()) };
        let bare = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        let allowed = bare.parse::<std::net::IpAddr>().is_ok()
            || bare == "localhost"
            || bare.ends_with(".localhost")
            || self.hosts.contains(&bare);
        if allowed {
            return Ok(());
        }
        Err(Answer::error(
            StatusCode::MISDIRECTED_REQUEST,
            "ask by IP address or `localhost`; other names have to be allowed by the program",
        ))
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

impl fmt::Debug for AdminBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminBuilder").finish_non_exhaustive()
    }
}
