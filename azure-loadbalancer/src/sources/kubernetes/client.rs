//! The client of the API server, over any `tower` service.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;
use url::Url;

use super::status::StatusWriter;
use super::watch::{KubernetesSource, WatchOptions};
use crate::node::Node;
use crate::plan::Ingress;
use crate::progress::logged_while_silent;
use crate::service::{FINALIZER, Service as LoadBalanced, ServiceKey};

/// The time limit for a response, except that of a watch, which is streamed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The maximum size of a page of a list, in bytes.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// The maximum size of an error body, in bytes.
const MAX_ERROR: usize = 64 * 1024;
/// The path of a pod's token.
#[cfg(feature = "reqwest")]
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The path of the certificate authorities that a pod trusts.
#[cfg(feature = "reqwest")]
const CA_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// A client of a Kubernetes API server, over a `tower` service with streamed response bodies.
#[derive(Clone)]
pub struct KubernetesClient<S> {
    service: S,
    endpoint: Url,
    token_file: Option<PathBuf>,
    namespace: Option<String>,
}

/// The error of a call of the API server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// The URL is not one of an API server, or the environment is not that of a pod.
    #[error("{0}")]
    Setup(String),
    /// The API server did not respond.
    #[error("{call}: there is no answer")]
    Unreachable {
        /// The call.
        call: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response timed out.
    #[error("{call}: there was no answer within {PATIENCE:?}")]
    TimedOut {
        /// The call.
        call: String,
    },
    /// The response is an error.
    #[error("{call}: {status}: {message}")]
    Rejected {
        /// The call.
        call: String,
        /// The status.
        status: StatusCode,
        /// The message of the API server.
        message: String,
    },
    /// The response has an unexpected form.
    #[error("{call}: {why}")]
    Malformed {
        /// The call.
        call: String,
        /// The error.
        why: String,
    },
}

impl KubernetesError {
    /// Returns true if a retry may succeed: after no response, 408, 429 or a status of 500 to 599.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Rejected { status, .. } => {
                let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
                status.is_server_error() || passing.contains(status)
            }
            Self::Setup(_) | Self::Malformed { .. } => false,
        }
    }

    /// Returns true if the requested version is no longer known.
    pub(super) fn is_gone(&self) -> bool {
        matches!(
            self,
            Self::Rejected {
                status: StatusCode::GONE,
                ..
            }
        )
    }
}

impl<S> KubernetesClient<S> {
    /// Creates a client of the API server at a URL such as `https://10.0.0.1:443`.
    ///
    /// # Errors
    ///
    /// The URL is not absolute, not `http` or `https`, or has a path.
    pub fn new(service: S, endpoint: &str) -> Result<Self, KubernetesError> {
        let wrong = |why: &str| {
            KubernetesError::Setup(format!(
                "{endpoint:?} is not the address of an API server: {why}"
            ))
        };
        let url = Url::parse(endpoint).map_err(|error| wrong(&error.to_string()))?;
        // A path would be lost in the URLs of calls.
        if !matches!(url.scheme(), "http" | "https") || !matches!(url.path(), "" | "/") {
            return Err(wrong("write for example https://10.0.0.1:443"));
        }
        Ok(Self {
            service,
            endpoint: url,
            token_file: None,
            namespace: None,
        })
    }

    /// Sets a file with the bearer token, which is read for each call, since tokens are replaced. Default: no
    /// token.
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self
    }

    /// Restricts the client to the services of one namespace. Resources of services in other namespaces have
    /// no owner then: set [`OrphanPolicy::Report`](crate::config::OrphanPolicy::Report), or they are removed.
    /// Default: all namespaces.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }
}

impl<S> fmt::Debug for KubernetesClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesClient")
            .field("endpoint", &self.endpoint.as_str())
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl<S, B> KubernetesClient<S>
where
    S: Service<Request<Bytes>, Response = Response<B>> + Clone + Send + Sync,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Returns a source of the services.
    pub fn services(&self) -> KubernetesSource<LoadBalanced, S, B> {
        let path: Vec<&str> = match &self.namespace {
            Some(namespace) => vec!["api", "v1", "namespaces", namespace, "services"],
            None => vec!["api", "v1", "services"],
        };
        KubernetesSource::new(self.clone(), &path, WatchOptions::default())
    }

    /// Returns a source of the nodes.
    pub fn nodes(&self) -> KubernetesSource<Node, S, B> {
        KubernetesSource::new(
            self.clone(),
            &["api", "v1", "nodes"],
            WatchOptions::default(),
        )
    }

    /// Returns a writer of the services' addresses into their status; see [`follow`](crate::execute::follow).
    pub fn status_writer(&self) -> StatusWriter<S> {
        StatusWriter::new(self.clone())
    }

    /// Writes the addresses of a service into its status. A DNS name is omitted, as by Kubernetes' own
    /// provider, since consumers that find both would create records for both.
    ///
    /// # Errors
    ///
    /// The API server does not respond, or responds with an error. A deleted service is no error.
    pub async fn write_status(
        &self,
        service: &ServiceKey,
        ingress: &[Ingress],
    ) -> Result<(), KubernetesError> {
        let path = [
            "api",
            "v1",
            "namespaces",
            &service.namespace,
            "services",
            &service.name,
            "status",
        ];
        let ingress: Vec<_> = ingress.iter().map(|one| json!({ "ip": one.ip })).collect();
        let body = json!({ "status": { "loadBalancer": { "ingress": ingress } } });
        let mut request = self
            .request(
                Method::PATCH,
                self.url(&path, &[]),
                Bytes::from(body.to_string()),
            )
            .await?;
        let merge = HeaderValue::from_static("application/merge-patch+json");
        request.headers_mut().insert(CONTENT_TYPE, merge);
        // A service that was deleted meanwhile needs no status.
        match self.whole(request).await {
            Err(KubernetesError::Rejected {
                status: StatusCode::NOT_FOUND,
                ..
            }) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Adds Kubernetes' finalizer for load balancers to a service, or removes it. Other finalizers stay.
    ///
    /// # Errors
    ///
    /// The API server does not respond, or responds with an error. A deleted service is no error.
    pub async fn write_finalizer(
        &self,
        service: &ServiceKey,
        is_there: bool,
    ) -> Result<(), KubernetesError> {
        let ServiceKey { namespace, name } = service;
        let path = ["api", "v1", "namespaces", namespace, "services", name];
        // A patch of this kind merges lists of finalizers, whatever others write meanwhile.
        let field = match is_there {
            true => "finalizers",
            false => "$deleteFromPrimitiveList/finalizers",
        };
        let body = json!({ "metadata": { field: [FINALIZER] } });
        let body = Bytes::from(body.to_string());
        let url = self.url(&path, &[]);
        let mut request = self.request(Method::PATCH, url, body).await?;
        let merge = HeaderValue::from_static("application/strategic-merge-patch+json");
        request.headers_mut().insert(CONTENT_TYPE, merge);
        match self.whole(request).await {
            Err(KubernetesError::Rejected {
                status: StatusCode::NOT_FOUND,
                ..
            }) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Writes an event of a service.
    pub(super) async fn write_event(
        &self,
        namespace: &str,
        event: &Value,
    ) -> Result<(), KubernetesError> {
        let path = ["api", "v1", "namespaces", namespace, "events"];
        let body = Bytes::from(event.to_string());
        let url = self.url(&path, &[]);
        let mut request = self.request(Method::POST, url, body).await?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        self.whole(request).await.map(drop)
    }

    /// Creates or replaces an object, and returns it as stored.
    pub(super) async fn write(
        &self,
        method: Method,
        url: Url,
        document: &Value,
    ) -> Result<Value, KubernetesError> {
        let body = Bytes::from(document.to_string());
        let mut request = self.request(method, url, body).await?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let (call, body) = self.whole(request).await?;
        serde_json::from_slice(&body).map_err(|error| KubernetesError::Malformed {
            call,
            why: error.to_string(),
        })
    }

    pub(super) fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.endpoint.clone();
        // `extend` escapes each segment, so that no name can add further ones.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    async fn request(
        &self,
        method: Method,
        url: Url,
        body: Bytes,
    ) -> Result<Request<Bytes>, KubernetesError> {
        let mut builder = Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(ACCEPT, "application/json");
        if let Some(path) = self.token_file.clone() {
            let shown = path.display().to_string();
            let failed = |why: String| {
                KubernetesError::Setup(format!("cannot read a token from {shown}: {why}"))
            };
            // The file may be on a slow volume, and is read for each call.
            let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
            let text = text
                .map_err(|error| failed(error.to_string()))?
                .map_err(|error| failed(error.to_string()))?;
            let mut value = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
                .map_err(|_| failed("it is not a token".to_owned()))?;
            // Sensitive headers are not shown by `Debug`.
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        builder
            .body(body)
            .map_err(|error| KubernetesError::Setup(error.to_string()))
    }

    /// Sends a `GET` and returns the unread body.
    pub(super) async fn get(&self, url: Url) -> Result<(String, B), KubernetesError> {
        let request = self.request(Method::GET, url, Bytes::new()).await?;
        let call = name_of(&request);
        logged_while_silent(&call, self.send(request)).await
    }

    async fn send(&self, request: Request<Bytes>) -> Result<(String, B), KubernetesError> {
        let call = name_of(&request);
        let mut service = self.service.clone();
        let sent = async {
            poll_fn(|context| service.poll_ready(context))
                .await
                .map_err(Into::into)?;
            service.call(request).await.map_err(Into::into)
        };
        let response = match timeout(PATIENCE, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(source)) => return Err(KubernetesError::Unreachable { call, source }),
            Err(_) => return Err(KubernetesError::TimedOut { call }),
        };
        let status = response.status();
        let body = response.into_body();
        if status.is_success() {
            return Ok((call, body));
        }
        // The body only explains the error, so a missing one is no further error.
        let text = timeout(PATIENCE, Limited::new(body, MAX_ERROR).collect()).await;
        let text = text
            .ok()
            .and_then(Result::ok)
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        let said: Value = serde_json::from_slice(&text).unwrap_or_default();
        let message = said["message"]
            .as_str()
            .unwrap_or("the response names no reason");
        let message = message
            .chars()
            .filter(|c| !c.is_control())
            .take(500)
            .collect();
        Err(KubernetesError::Rejected {
            call,
            status,
            message,
        })
    }

    async fn whole(&self, request: Request<Bytes>) -> Result<(String, Bytes), KubernetesError> {
        let call = name_of(&request);
        let whole = async {
            let (call, body) = self.send(request).await?;
            match timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await {
                Ok(Ok(body)) => Ok((call, body.to_bytes())),
                Ok(Err(source)) => Err(KubernetesError::Unreachable { call, source }),
                Err(_) => Err(KubernetesError::TimedOut { call }),
            }
        };
        logged_while_silent(&call, whole).await
    }

    /// Sends a `GET` whose response is one document.
    pub(super) async fn document(&self, url: Url) -> Result<Value, KubernetesError> {
        let request = self.request(Method::GET, url, Bytes::new()).await?;
        let (call, body) = self.whole(request).await?;
        serde_json::from_slice(&body).map_err(|error| KubernetesError::Malformed {
            call,
            why: error.to_string(),
        })
    }
}

/// Returns the name of a call in errors and logs, without the query.
fn name_of(request: &Request<Bytes>) -> String {
    format!("{} {}", request.method(), request.uri().path())
}

/// A client over reqwest, as a `tower` service.
#[cfg(feature = "reqwest")]
mod in_cluster {
    use std::env;
    use std::path::Path;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;
    use crate::arm::ReqwestTransport;

    type Answer = Result<Response<reqwest::Body>, reqwest::Error>;

    impl Service<Request<Bytes>> for ReqwestTransport {
        type Response = Response<reqwest::Body>;
        type Error = reqwest::Error;
        type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), reqwest::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Bytes>) -> Self::Future {
            let client = self.client().clone();
            Box::pin(async move {
                let request = reqwest::Request::try_from(request)?;
                client
                    .execute(request)
                    .await
                    .map(Response::from)
                    // The URL is omitted, since errors are logged.
                    .map_err(reqwest::Error::without_url)
            })
        }
    }

    impl KubernetesClient<ReqwestTransport> {
        /// Creates a client for a pod, by its service account.
        ///
        /// # Errors
        ///
        /// The environment is not that of a pod.
        pub fn in_cluster() -> Result<Self, KubernetesError> {
            let variable = |name: &str| {
                env::var(name).map_err(|_| {
                    KubernetesError::Setup(format!(
                        "{name} is not set: this is not a pod of Kubernetes"
                    ))
                })
            };
            let (host, port) = (
                variable("KUBERNETES_SERVICE_HOST")?,
                variable("KUBERNETES_SERVICE_PORT")?,
            );
            // An IPv6 address needs brackets in a URL.
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host
            };
            let transport = ReqwestTransport::trusting(Path::new(CA_FILE)).map_err(|error| {
                let cause = error
                    .source()
                    .map(|cause| format!(": {cause}"))
                    .unwrap_or_default();
                KubernetesError::Setup(format!("{error}{cause}"))
            })?;
            Ok(Self::new(transport, &format!("https://{host}:{port}"))?.token_file(TOKEN_FILE))
        }
    }
}
