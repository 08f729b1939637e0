//! The health of a following program, for probes and monitoring.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use azure_loadbalancer::execute::{ReconcileError, Reconciled};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use program_kit::Failure;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The maximum number of connections, and the time limits for the head of a request and for a whole
/// connection.
const MAX_CONNECTIONS: usize = 32;
const HEAD: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(60);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The results of the reconciliations so far.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<HealthCounts>);

#[derive(Debug, Default)]
struct HealthCounts {
    reconciliations: u64,
    failures: u64,
    reads: u64,
    writes: u64,
    services: usize,
    services_with_errors: usize,
    orphans: usize,
    warnings: usize,
    /// True if the last reconciliation was complete.
    is_done: bool,
    /// The end of the last reconciliation.
    at: Option<Instant>,
    /// The end of the last reconciliation that could read the resources.
    read_at: Option<Instant>,
    /// The leadership of this program, if there may be several.
    standing: Option<LeaderState>,
    /// The number of times that it has become the leader.
    terms: u64,
}

/// The leadership of a program that may be one of several.
#[derive(Debug)]
enum LeaderState {
    /// The program itself leads.
    Leading,
    /// The name of the program that leads, when it was last read.
    By(String),
}

impl Health {
    pub(super) fn note(&self, result: &Result<Reconciled, ReconcileError>) {
        let mut counts = self.0.lock();
        counts.reconciliations += 1;
        counts.at = Some(Instant::now());
        let Ok(report) = result else {
            counts.failures += 1;
            counts.is_done = false;
            return;
        };
        let errors = report.errors().len();
        counts.is_done = report.is_converged() && errors == 0;
        counts.failures += u64::from(!counts.is_done);
        counts.reads += report.calls.reads;
        counts.writes += report.calls.writes;
        counts.services = report.services.len();
        counts.services_with_errors = errors;
        counts.orphans = report.orphans.iter().filter(|one| !one.removed).count();
        counts.warnings = report.warnings.len();
        counts.read_at = counts.at;
    }

    /// Records that this program leads.
    pub(super) fn lead(&self) {
        let mut counts = self.0.lock();
        counts.standing = Some(LeaderState::Leading);
        counts.terms += 1;
    }

    /// Records that another program leads. An empty name: unknown which.
    pub(super) fn stand_by(&self, holder: &str) {
        self.0.lock().standing = Some(LeaderState::By(holder.to_owned()));
    }

    /// Returns the readiness, with its reason. A program that stands by is ready, since the replacement of a
    /// leader must not wait for the leader to stop.
    fn readiness(&self) -> Result<String, &'static str> {
        let counts = self.0.lock();
        match (&counts.standing, counts.read_at) {
            (Some(LeaderState::By(holder)), _) if holder.is_empty() => {
                Ok("ok, standing by; the leader is not known\n".to_owned())
            }
            (Some(LeaderState::By(holder)), _) => {
                Ok(format!("ok, standing by; leading: {holder}\n"))
            }
            (Some(LeaderState::Leading), Some(_)) => Ok("ok, leading\n".to_owned()),
            (None, Some(_)) => Ok("ok\n".to_owned()),
            (_, None) => Err("nothing has been reconciled yet\n"),
        }
    }

    fn metrics(&self) -> String {
        let counts = self.0.lock();
        let age = |at: Option<Instant>| at.map(|at| at.elapsed().as_secs_f64());
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "# HELP azure_loadbalancer_{name} {help}\n# TYPE azure_loadbalancer_{name} {kind}\nazure_loadbalancer_{name} {value}"
                );
            }
        };
        let number = |count: u64| Some(count as f64);
        let size = |count: usize| Some(count as f64);
        metric(
            "reconciliations_total",
            "counter",
            "Reconciliations that have ended.",
            number(counts.reconciliations),
        );
        metric(
            "reconciliation_failures_total",
            "counter",
            "Reconciliations that did not get everything done.",
            number(counts.failures),
        );
        metric(
            "reads_total",
            "counter",
            "Reads of the resource manager.",
            number(counts.reads),
        );
        metric(
            "writes_total",
            "counter",
            "Writes to the resource manager.",
            number(counts.writes),
        );
        metric(
            "services",
            "gauge",
            "Services at the last reconciliation.",
            size(counts.services),
        );
        metric(
            "services_with_errors",
            "gauge",
            "Services whose resources do not match their requests.",
            size(counts.services_with_errors),
        );
        metric(
            "orphans",
            "gauge",
            "Resources that belong to no service and stay.",
            size(counts.orphans),
        );
        metric(
            "warnings",
            "gauge",
            "Warnings of the last reconciliation.",
            size(counts.warnings),
        );
        metric(
            "last_reconciliation_done",
            "gauge",
            "Whether the last reconciliation got everything done.",
            number(u64::from(counts.is_done)),
        );
        metric(
            "last_reconciliation_age_seconds",
            "gauge",
            "The time since the last reconciliation ended.",
            age(counts.at),
        );
        metric(
            "last_read_age_seconds",
            "gauge",
            "The time since the end of the last reconciliation that could read the resources.",
            age(counts.read_at),
        );
        let is_leading = |standing: &LeaderState| matches!(standing, LeaderState::Leading);
        metric(
            "leader",
            "gauge",
            "Whether this program writes, where one of several does.",
            counts
                .standing
                .as_ref()
                .map(|one| f64::from(u8::from(is_leading(one)))),
        );
        metric(
            "terms_total",
            "counter",
            "How often this program has begun to write, where one of several does.",
            counts.standing.as_ref().map(|_| counts.terms as f64),
        );
        text
    }

    fn answer(&self, method: &Method, path: &str) -> (StatusCode, String) {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        match path {
            _ if !is_read => (
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD\n".to_owned(),
            ),
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => match self.readiness() {
                Ok(text) => (StatusCode::OK, text),
                Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text.to_owned()),
            },
            "/metrics" => (StatusCode::OK, self.metrics()),
            _ => (
                StatusCode::NOT_FOUND,
                "there are /healthz, /readyz and /metrics\n".to_owned(),
            ),
        }
    }
}

/// Serves the endpoints until the returned guard is dropped.
pub(super) async fn serve(address: &str, health: Arc<Health>) -> Result<Served, Failure> {
    let listener = TcpListener::bind(address).await;
    let listener =
        listener.map_err(|error| Failure::new(format!("cannot listen at {address}: {error}")))?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::from_error(&error))?;
    let task = tokio::spawn(accept(listener, health));
    Ok(Served { address, task })
}

/// A server that ends when this is dropped.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, health: Arc<Health>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let health = Arc::clone(&health);
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (status, text) = health.answer(request.method(), request.uri().path());
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                let kind =
                    http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response
                    .headers_mut()
                    .insert(http::header::CONTENT_TYPE, kind);
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), service);
            // A slow client is dropped to make room for others.
            let _ = tokio::time::timeout(WHOLE, connection).await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_and_metrics_tell_who_leads() {
        let health = Health::default();
        let ready = |health: &Health| health.answer(&Method::GET, "/readyz");
        assert_eq!(ready(&health).0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!health.metrics().contains("_leader"), "it is alone");
        health.stand_by("pod-1");
        let (status, text) = ready(&health);
        assert_eq!(
            (status, &*text),
            (StatusCode::OK, "ok, standing by; leading: pod-1\n")
        );
        assert!(health.metrics().contains("\nazure_loadbalancer_leader 0\n"));
        health.lead();
        // A leader is ready after its first reconciliation.
        assert_eq!(ready(&health).0, StatusCode::SERVICE_UNAVAILABLE);
        health.note(&Ok(Reconciled::default()));
        assert_eq!(ready(&health), (StatusCode::OK, "ok, leading\n".to_owned()));
        let metrics = health.metrics();
        assert!(
            metrics.contains("\nazure_loadbalancer_leader 1\n"),
            "{metrics}"
        );
        assert!(
            metrics.contains("\nazure_loadbalancer_terms_total 1\n"),
            "{metrics}"
        );
    }
}
