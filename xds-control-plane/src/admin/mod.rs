//! The admin API, read-only: the served resources, the connected clients, and their acknowledgements.
//!
//! | path | response |
//! |---|---|
//! | `/healthz` | 200 while the process lives |
//! | `/readyz` | 200 once resources of this run are served, otherwise 503 with the reason |
//! | `/metrics` | Prometheus text |
//! | `/api/v1/overview` | the state in a few numbers |
//! | `/api/v1/snapshot` | names and versions of all served resources |
//! | `/api/v1/snapshot?type=&name=&via=` | the resources of a type, or one of them |
//! | `/api/v1/nodes?id=` | the connected and recently polling clients, their resources and last rejections |
//! | `/api/v1/quarantine` | services that are not served as requested, with the reasons |
//! | `/api/v1/warnings` | all findings that need attention: the same, one by one, and problems of sources |
//!
//! `/readyz` does not count resources that are only kept from an earlier run. A `type` is `cds`, `eds`, `lds`
//! or `rds`. Resources are shown as clients get them `via` an `aggregated` stream (the default), `separate`
//! streams or `rest`.
//!
//! Responses are JSON with names in `snake_case`, times in seconds since 1970, ages in seconds; resources
//! are in the canonical JSON of protobuf. Names may be added to `v1`; none is removed or changes its
//! meaning.
//!
//! There is no authentication, so the address belongs on the loopback interface or a network of operators.
//! Requests must name the address they were sent to by IP address, `localhost`, or a name that was allowed
//! with [`AdminBuilder::host`]: a web page elsewhere could otherwise make a browser read all of this (DNS
//! rebinding).

mod answer;
mod host;
mod quarantine;
mod resources;
mod serve;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use percent_encoding::percent_decode_str;
use prometheus_client::registry::Registry;
use serde_json::json;

use self::answer::AdminResponse;
pub use self::quarantine::{Quarantine, QuarantineEntry, WarningEntry};
use crate::server::ServerHandle;
use crate::snapshot::ResourceType;

/// The admin API of one server. Cheap to clone.
///
/// [`respond`](Self::respond) handles one request and can be mounted in any HTTP server;
/// [`serve`](Self::serve) is a small server of its own.
#[derive(Clone)]
pub struct Admin {
    inner: Arc<Inner>,
}

/// Makes an [`Admin`].
pub struct AdminBuilder {
    inner: Inner,
}

struct Inner {
    server: ServerHandle,
    registry: Registry,
    quarantine: Option<Arc<dyn Quarantine>>,
    hosts: Vec<String>,
}

impl Admin {
    /// Creates the admin API of a server. `/metrics` shows the metrics of `registry`; see
    /// [`ServerHandle::register`].
    #[must_use]
    pub fn builder(server: ServerHandle, registry: Registry) -> AdminBuilder {
        AdminBuilder {
            inner: Inner {
                server,
                registry,
                quarantine: None,
                hosts: Vec::new(),
            },
        }
    }

    /// Responds to one request. Its body is ignored.
    #[must_use]
    pub fn respond<B>(&self, request: &Request<B>) -> Response<Bytes> {
        if let Err(rejection) = host::check(request, &self.inner.hosts) {
            return rejection.into_response(false);
        }
        let head_only = request.method() == Method::HEAD;
        if !head_only && request.method() != Method::GET {
            return AdminResponse::error(
                StatusCode::METHOD_NOT_ALLOWED,
                "the admin API can only be read",
            )
            .with_header(header::ALLOW, "GET, HEAD")
            .into_response(false);
        }
        let query = request.uri().query().unwrap_or_default();
        self.inner
            .answer(request.uri().path(), query)
            .into_response(head_only)
    }
}

impl AdminBuilder {
    /// Shows the resources in quarantine.
    #[must_use]
    pub fn quarantine(mut self, quarantine: Arc<dyn Quarantine>) -> Self {
        self.inner.quarantine = Some(quarantine);
        self
    }

    /// Allows requests to name the address by this host name. IP addresses and `localhost` are always
    /// allowed.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.inner.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Makes the admin API.
    #[must_use]
    pub fn build(self) -> Admin {
        Admin {
            inner: Arc::new(self.inner),
        }
    }
}

impl Inner {
    fn answer(&self, path: &str, query: &str) -> AdminResponse {
        match path {
            "/healthz" => AdminResponse::text("ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => self.metrics(),
            "/api/v1/overview" => self.overview(),
            "/api/v1/snapshot" => resources::answer(&self.server, query),
            "/api/v1/nodes" => self.nodes(query),
            "/api/v1/quarantine" => {
                AdminResponse::json(&json!({ "quarantine": self.quarantined() }))
            }
            "/api/v1/warnings" => AdminResponse::json(&json!({ "warnings": self.warnings() })),
            _ => AdminResponse::error(
                StatusCode::NOT_FOUND,
                "there is nothing here; see /api/v1/overview, snapshot, nodes, quarantine and warnings, /metrics, /healthz, /readyz",
            ),
        }
    }

    fn readiness(&self) -> AdminResponse {
        if self.server.is_ready() {
            return AdminResponse::text("ready\n");
        }
        let waiting = self
            .quarantine
            .as_ref()
            .map(|source| source.waiting_for())
            .unwrap_or_default();
        let waiting = if waiting.is_empty() {
            "nothing has been read yet that could be served".to_owned()
        } else {
            format!("no good read yet of {}", waiting.join(", "))
        };
        let kept = match self.server.snapshot() {
            Some(_) => "; the last served resources are served meanwhile",
            None => "",
        };
        AdminResponse::text(format!("not ready: {waiting}{kept}\n"))
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
    }

    fn metrics(&self) -> AdminResponse {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => AdminResponse::new(
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                text,
            ),
            Err(error) => {
                AdminResponse::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
            }
        }
    }

    fn overview(&self) -> AdminResponse {
        let snapshot = self.server.snapshot();
        let types: serde_json::Map<_, _> = snapshot
            .iter()
            .flat_map(|snapshot| {
                ResourceType::MAKE_BEFORE_BREAK.map(|resource_type| {
                    let set = snapshot.resources(resource_type);
                    let state = json!({ "count": set.len(), "version": set.version().to_string() });
                    (resource_type.to_string(), state)
                })
            })
            .collect();
        AdminResponse::json(&json!({
            "ready": self.server.is_ready(),
            "snapshot_age_seconds": self.server.snapshot_age().map(|age| age.as_secs_f64()),
            "types": types,
            "nodes": self.server.nodes().len(),
            "streams": self.server.open_streams(),
            "quarantined": self.quarantined().len(),
            "warnings": self.warnings().len(),
        }))
    }

    fn nodes(&self, query: &str) -> AdminResponse {
        let mut nodes = self.server.nodes();
        if let Some(id) = parameter(query, "id") {
            nodes.retain(|node| node.node.id == id);
        }
        AdminResponse::json(&json!({ "nodes": nodes }))
    }

    fn warnings(&self) -> Vec<WarningEntry> {
        let source = self.quarantine.as_ref();
        source.map(|source| source.warnings()).unwrap_or_default()
    }

    fn quarantined(&self) -> Vec<QuarantineEntry> {
        let source = self.quarantine.as_ref();
        source.map(|source| source.entries()).unwrap_or_default()
    }
}

/// The first value of a parameter of the query; empty counts as missing.
fn parameter(query: &str, name: &str) -> Option<String> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, value)| *key == name && !value.is_empty())
        .map(|(_, value)| {
            let spaced = value.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        })
}

impl fmt::Debug for Admin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Admin").finish_non_exhaustive()
    }
}

impl fmt::Debug for AdminBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AdminBuilder")
            .finish_non_exhaustive()
    }
}
