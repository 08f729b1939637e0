//! The admin API and page: a read-only view of the proxy's state and decisions.
//!
//! | path | response |
//! |---|---|
//! | `/` | a page for browsers |
//! | `/healthz` | 200 while the process lives |
//! | `/readyz` | 200 once a valid configuration of every required source serves, else 503 and why |
//! | `/metrics` | Prometheus text |
//! | `/api/v1/overview` | the state in one sentence, traffic, and the flow that the page draws |
//! | `/api/v1/routes?filter=&state=&sort=&offset=&limit=` | routes with their traffic |
//! | `/api/v1/routes/{id}` | one route with its configuration |
//! | `/api/v1/clusters?filter=&state=&sort=&offset=&limit=` | clusters with health and traffic |
//! | `/api/v1/clusters/{id}` | one cluster with its destinations and its configuration |
//! | `/api/v1/history?route=&cluster=` | requests, failures and percentiles of the last hour |
//! | `/api/v1/listeners` | open listeners and their certificates |
//! | `/api/v1/providers` | the sources of the configuration and their state |
//! | `/api/v1/config` | the active configuration without secrets |
//! | `/api/v1/problems` | all problems of the configuration |
//! | `/api/v1/changes` | the last configurations with their changes |
//! | `/api/v1/requests?after=` | the latest requests, if the program keeps some |
//! | `/api/v1/log` | the filter of the log; `PUT ?filter=&seconds=` applies another one for a while until `DELETE` |
//! | `/api/v1/explain?method=&url=&header=&listener=&remote=` or `?request=` | the decisions for a request |
//!
//! Responses are JSON with names in `snake_case`. Ages and durations are in seconds unless a name
//! says otherwise. Fields may be added to `v1`; none is removed or changes its meaning.
//!
//! Without [tokens](AdminBuilder::tokens) and certificates of clients, everyone who reaches the
//! listener may read everything: bind it to the loopback interface. With them, only `/healthz` and
//! `/readyz` are open to all.
//!
//! The host of a request must be an IP address, `localhost`, or a name allowed with
//! [`AdminBuilder::host`]. Otherwise a foreign web page could make a browser read the configuration
//! (DNS rebinding).

mod access;
mod assets;
mod cluster_list;
mod config_view;
mod explain_query;
mod flow;
mod history;
mod listener_list;
mod log;
mod order;
mod overview;
mod places;
mod providers;
mod query;
mod request_list;
mod respond;
mod route_list;
mod serve;
mod server_metrics;
mod source_metrics;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod trouble;
mod verdict;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use discovery_core::Merged;
use discovery_core::address::is_safe_from_rebinding;
use http::{HeaderMap, Method, Request, StatusCode, header};
use log_sink::Seldom;
use parking_lot::RwLock;
use proxy_model::Problems;

pub use self::access::{AdminTokens, InvalidAdminTokens};
pub use self::config_view::redact;
use self::listener_list::OpenListener;
pub use self::log::AdminLog;
use self::providers::Start;
use self::query::Query;
use self::respond::AdminResponse;
use self::state::AdminState;
use crate::explain::Listeners;
use crate::observe::{LOG_PAUSE, targets};
use crate::proxy::Proxy;
#[cfg(feature = "tls")]
use crate::server::TlsServerConfig;
use crate::server::{Limits, RequestTail, Server};

/// The admin API and page of one proxy. Cheap to clone.
///
/// [`respond`](Self::respond) handles one request and can be mounted in any HTTP server;
/// [`serve`](Self::serve) is a small server of its own.
#[derive(Clone)]
pub struct Admin {
    inner: Arc<AdminState>,
}

/// Builds an [`Admin`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct AdminBuilder {
    inner: AdminState,
}

impl Admin {
    /// Returns a builder for the admin API of `proxy`.
    pub fn builder(proxy: Proxy) -> AdminBuilder {
        AdminBuilder {
            inner: AdminState {
                proxy,
                merged: None,
                hosts: Vec::new(),
                tokens: RwLock::default(),
                #[cfg(feature = "tls")]
                tls: None,
                rejected: AtomicU64::new(0),
                started: Instant::now(),
                server: None,
                limits: Limits::default(),
                listeners: Listeners::default(),
                open_listeners: Vec::new(),
                dropped_lines: Vec::new(),
                dropped_spans: None,
                requests: None,
                program_problems: None,
                log: None,
                draining: AtomicBool::new(false),
                has_started: AtomicBool::new(false),
                evicted: Arc::default(),
            },
        }
    }

    /// Makes `/readyz` report that the proxy is stopping, so that load balancers send no new
    /// clients.
    pub fn set_draining(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    /// Replaces the [tokens](AdminBuilder::tokens), such as when a file with them has changed. Applies
    /// to the next request, also on connections that are open.
    pub fn set_tokens(&self, tokens: AdminTokens) {
        *self.inner.tokens.write() = Some(tokens);
    }

    /// Returns the text of `/metrics`, without a request.
    pub fn metrics(&self) -> String {
        self.inner.metrics_text()
    }

    /// Handles one request. Never waits: the response is built from the current state.
    ///
    /// If there are [tokens](AdminBuilder::tokens), the request must present one.
    pub fn respond<B>(&self, request: &Request<B>) -> http::Response<bytes::Bytes> {
        self.respond_to(request, false)
    }

    /// Handles a request of a client that has presented a certificate in its handshake, or has not.
    fn respond_to<B>(
        &self,
        request: &Request<B>,
        is_certified: bool,
    ) -> http::Response<bytes::Bytes> {
        let admin = &*self.inner;
        // First, so that a page of another host cannot read the API (DNS rebinding).
        if let Err(rejection) = admin.check_host(request) {
            return rejection.into_response(false);
        }
        let is_health = places::is_health(request.uri().path());
        if !is_health && !admin.is_allowed(request.headers(), is_certified) {
            return admin.unauthorized().into_response(false);
        }
        let (method, path) = (request.method(), request.uri().path());
        let head_only = method == Method::HEAD;
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let (is_log, is_change) = (
            path == "/api/v1/log",
            matches!(*method, Method::PUT | Method::DELETE),
        );
        if !head_only && method != Method::GET && !(is_log && is_change) {
            let (message, allowed) = match is_log {
                true => ("the log is read, set or reset", "GET, HEAD, PUT, DELETE"),
                false => ("the admin API can only be read", "GET, HEAD"),
            };
            return AdminResponse::error(StatusCode::METHOD_NOT_ALLOWED, message)
                .with_header(header::ALLOW, allowed)
                .into_response(false);
        }
        if is_log {
            let is_protected = admin.is_protected();
            return log::answer(admin, method, &query, is_protected).into_response(head_only);
        }
        let mut answer = admin.answer(path, &query);
        if path == "/metrics" && accepts_gzip(request.headers()) {
            answer = answer.gzipped();
        }
        answer.into_response(head_only)
    }
}

/// Returns true if a client takes gzip: `Accept-Encoding` names it without the weight 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        // RFC 9110 section 12.4.2: a weight of 0 is a rejection.
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let is_rejected = weight
            .and_then(|weight| weight.parse::<f32>().ok())
            .is_some_and(|weight| weight <= 0.0);
        is_gzip && !is_rejected
    })
}

impl AdminBuilder {
    /// Adds the sources of the configuration: their state, problems and readiness.
    ///
    /// Without a merge the proxy counts as ready and its configuration as supplied by the program.
    /// The proxy must serve the snapshots of the merge unchanged: readiness compares their
    /// revisions.
    pub fn merged(mut self, merged: Arc<Merged>) -> Self {
        self.inner.merged = Some(merged);
        self
    }

    /// Allows this host name in requests. IP addresses and `localhost` are always allowed.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.inner.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Requires one of these tokens of each request except those for `/healthz` and `/readyz`: as
    /// `Authorization: Bearer`, or as the password of HTTP Basic with any user, which browsers ask for.
    /// Default: none is required. Without [TLS](Self::tls) anyone on the way can read them.
    pub fn tokens(mut self, tokens: AdminTokens) -> Self {
        self.inner.tokens = RwLock::new(Some(tokens));
        self
    }

    /// Lets [`Admin::serve`] speak TLS. Names in the certificates have to be [allowed](Self::host).
    ///
    /// With optional client certificates, a request needs one or a [token](Self::tokens), except for
    /// `/healthz` and `/readyz`. With required ones, no connection is possible without, and a token is
    /// needed besides if there are any.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsServerConfig) -> Self {
        self.inner.tls = Some(tls);
        self
    }

    /// Adds problems that the program finds while it runs, such as a file that has become unreadable.
    pub fn problems(mut self, find: impl Fn() -> Problems + Send + Sync + 'static) -> Self {
        self.inner.program_problems = Some(Box::new(find));
        self
    }

    /// Adds the server of the proxy: its counters, its listeners with their certificates, and the limits and rules that
    /// `explain` applies to requests. Default: one listener with default limits and without rules.
    pub fn server(mut self, server: &Server) -> Self {
        let listeners = server.listeners().iter();
        self.inner.server = Some(Arc::clone(server.metrics()));
        self.inner.limits = server.limits().clone();
        self.inner.listeners = listeners
            .clone()
            .map(|listener| (listener.name(), listener.rules()))
            .collect();
        self.inner.open_listeners = listeners
            .zip(server.local_addrs())
            .map(|(listener, address)| OpenListener::new(listener, *address))
            .collect();
        self
    }

    /// Adds a counter of missing lines of the named log to `/metrics`: lines that were dropped or
    /// could not be written.
    pub fn dropped_lines(
        mut self,
        log: &'static str,
        count: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.inner.dropped_lines.push((log, Box::new(count)));
        self
    }

    /// Adds a counter of spans that the export of [traces](crate::trace) has dropped to `/metrics`.
    pub fn dropped_spans(mut self, count: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.inner.dropped_spans = Some(Box::new(count));
        self
    }

    /// Adds the latest requests, which the server passes to `requests` as an access log. Default: none.
    pub fn requests(mut self, requests: Arc<RequestTail>) -> Self {
        self.inner.requests = Some(requests);
        self
    }

    /// Adds the log of the program, whose filter requests may change for a while. They may only where
    /// [tokens](Self::tokens) or certificates of clients are required. Default: none.
    pub fn log(mut self, log: Arc<dyn AdminLog>) -> Self {
        self.inner.log = Some(log);
        self
    }

    /// Builds the admin API.
    pub fn build(self) -> Admin {
        Admin {
            inner: Arc::new(self.inner),
        }
    }
}

impl AdminState {
    fn answer(&self, path: &str, query: &Query) -> AdminResponse {
        match path {
            "/healthz" => AdminResponse::text("ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => self.metrics(),
            "/api/v1/overview" => AdminResponse::json(&overview::of(self)),
            "/api/v1/routes" => AdminResponse::json(&route_list::of(self, query)),
            "/api/v1/clusters" => AdminResponse::json(&cluster_list::of(self, query)),
            "/api/v1/providers" => AdminResponse::json(&providers::of(self)),
            "/api/v1/config" => AdminResponse::json(&config_view::of(&self.proxy.snapshot())),
            "/api/v1/problems" => AdminResponse::json(&providers::problems(self)),
            "/api/v1/changes" => {
                AdminResponse::json(&serde_json::json!({ "changes": self.proxy.history() }))
            }
            "/api/v1/requests" => AdminResponse::json(&request_list::of(self, query)),
            "/api/v1/history" => history::of(self, query),
            "/api/v1/listeners" => AdminResponse::json(&listener_list::of(self)),
            "/api/v1/explain" => explain_query::answer(self, query),
            _ => {
                if let Some(id) = path.strip_prefix("/api/v1/clusters/") {
                    cluster_list::one(self, id)
                } else if let Some(id) = path.strip_prefix("/api/v1/routes/") {
                    route_list::one(self, id)
                } else {
                    assets::answer(path)
                }
            }
        }
    }

    fn readiness(&self) -> AdminResponse {
        if self.draining.load(Ordering::Relaxed) {
            return AdminResponse::text("not ready: stopping\n")
                .with_status(StatusCode::SERVICE_UNAVAILABLE);
        }
        match self.start() {
            Start::Ready => AdminResponse::text("ready\n"),
            start => AdminResponse::text(format!("not ready: {start}\n"))
                .with_status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    /// Returns true if clients are asked for certificates, and if all must present one.
    fn client_certificates(&self) -> (bool, bool) {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let policies = tls.policies();
            return (policies.ask_clients(), policies.require_clients());
        }
        (false, false)
    }

    /// Returns true if requests need a token or a certificate.
    fn is_protected(&self) -> bool {
        self.tokens.read().is_some() || self.client_certificates().0
    }

    /// Returns true if a request may be answered that is not for a health check.
    fn is_allowed(&self, headers: &HeaderMap, is_certified: bool) -> bool {
        let (asks, requires) = self.client_certificates();
        match &*self.tokens.read() {
            Some(tokens) => {
                // What every connection has is not enough where there are tokens, too.
                is_certified && !requires || tokens.are_presented(headers)
            }
            None => is_certified || !asks,
        }
    }

    /// Counts and logs a request that may not be answered.
    fn unauthorized(&self) -> AdminResponse {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
        if let Some(left_out) = SELDOM.pass() {
            tracing::warn!(target: targets::SERVER, left_out, "a request to the admin page was rejected: it has no valid token or certificate");
        }
        // Without a token that a browser could ask for, a certificate is missing.
        if self.tokens.read().is_none() {
            return AdminResponse::error(
                StatusCode::FORBIDDEN,
                "the admin page needs a certificate of the client",
            );
        }
        AdminResponse::error(
            StatusCode::UNAUTHORIZED,
            "send the token of the admin page as `Authorization: Bearer …`, or as the password of HTTP Basic",
        )
        .with_header(
            header::WWW_AUTHENTICATE,
            "Basic realm=\"proxy admin\", charset=\"UTF-8\"",
        )
    }

    fn metrics(&self) -> AdminResponse {
        AdminResponse::text(self.metrics_text()).with_header(
            header::CONTENT_TYPE,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )
    }

    fn metrics_text(&self) -> String {
        // Rejections of the merge never reach the proxy's own counter.
        let rejected = self
            .merged
            .as_ref()
            .map_or(0, |merged| merged.state().rejections);
        let text = self.proxy.collector().rejected_before(rejected).to_text();
        // The marker ends an exposition, and more metrics follow here.
        let mut text = text.trim_end().trim_end_matches("# EOF").to_owned();
        if let Some(server) = &self.server {
            server_metrics::write(&server.counts(), &mut text);
        }
        server_metrics::write_evicted(self.evicted.load(Ordering::Relaxed), &mut text);
        server_metrics::write_rejected(self.rejected.load(Ordering::Relaxed), &mut text);
        let dropped = self.dropped_lines.iter();
        server_metrics::write_dropped_lines(dropped.map(|(log, count)| (*log, count())), &mut text);
        if let Some(count) = &self.dropped_spans {
            server_metrics::write_dropped_spans(count(), &mut text);
        }
        let sources = self.merged.as_ref().map(|merged| merged.providers());
        let sources = sources.unwrap_or_default();
        if self.merged.is_some() {
            source_metrics::write(&sources, &mut text);
        }
        let names = sources.iter().map(|source| &*source.name);
        source_metrics::write_problems(names, self.all_problems(), &mut text);
        text.push_str("# EOF\n");
        text
    }

    /// Rejects requests that a foreign page made a browser send.
    fn check_host<B>(&self, request: &Request<B>) -> Result<(), AdminResponse> {
        let named = request.uri().host().map(str::to_owned).or_else(|| {
            let value = request.headers().get(header::HOST)?;
            let authority = http::uri::Authority::try_from(value.as_bytes());
            // An empty or malformed host is never an allowed one.
            Some(authority.map_or_else(|_| String::new(), |named| named.host().to_owned()))
        });
        if request
            .headers()
            .get_all(header::HOST)
            .iter()
            .nth(1)
            .is_some()
        {
            return Err(AdminResponse::error(
                StatusCode::BAD_REQUEST,
                "the request has more than one host",
            ));
        }
        let Some(host) = named else {
            // Health checks may be of HTTP/1.0, and tell nothing that a page could use.
            return match places::is_health(request.uri().path()) {
                true => Ok(()),
                false => Err(AdminResponse::error(
                    StatusCode::BAD_REQUEST,
                    "the request has no host",
                )),
            };
        };
        let is_named = |name: &String| name.eq_ignore_ascii_case(&host);
        if is_safe_from_rebinding(&host) || self.hosts.iter().any(is_named) {
            return Ok(());
        }
        Err(AdminResponse::error(
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
