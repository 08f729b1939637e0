use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::{Origin, OriginBuilder};
use crate::body;

/// An origin with a name, for tests of load balancing and health checks.
///
/// * `/health` gets 200 `healthy` or 503 `unhealthy`, as set by [`set_healthy`](Self::set_healthy);
///   at first 200.
/// * every other path gets 200 with the name as text.
///
/// All methods of [`Origin`] are available by dereference. The counts of [`traffic`](Origin::traffic)
/// include health checks; [`served`](Self::served) and [`health_checks`](Self::health_checks) are
/// separate.
///
/// ```
/// use testkit::client::Connection;
/// use testkit::origin::Origin;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), testkit::client::ClientError> {
/// let origin = Origin::named("blue");
/// let mut client = Connection::http1(origin.addr()).await?;
/// assert_eq!(client.get("/").await?.text(), "blue");
/// origin.set_healthy(false);
/// assert_eq!(client.get("/health").await?.status, 503);
/// assert_eq!((origin.served(), origin.health_checks()), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an origin stops when it is dropped"]
pub struct NamedOrigin {
    name: Arc<str>,
    state: Arc<OriginState>,
    origin: Origin,
}

#[derive(Debug)]
struct OriginState {
    healthy: AtomicBool,
    served: AtomicU64,
    health_checks: AtomicU64,
}

impl NamedOrigin {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the result of `/health` from now on.
    pub fn set_healthy(&self, healthy: bool) {
        self.state.healthy.store(healthy, Ordering::SeqCst);
    }

    /// Number of requests for other paths than `/health`.
    pub fn served(&self) -> u64 {
        self.state.served.load(Ordering::SeqCst)
    }

    /// Number of requests for `/health`.
    pub fn health_checks(&self) -> u64 {
        self.state.health_checks.load(Ordering::SeqCst)
    }

    /// Stops at once and waits until the port and all connections are closed: see [`Origin::stop`].
    pub async fn stop(self) {
        self.origin.stop().await;
    }
}

impl Deref for NamedOrigin {
    type Target = Origin;

    fn deref(&self) -> &Origin {
        &self.origin
    }
}

#[track_caller]
pub(super) fn start(builder: OriginBuilder, name: String) -> NamedOrigin {
    let name: Arc<str> = name.into();
    let state = Arc::new(OriginState {
        healthy: AtomicBool::new(true),
        served: AtomicU64::new(0),
        health_checks: AtomicU64::new(0),
    });
    let origin = builder.start({
        let (name, state) = (Arc::clone(&name), Arc::clone(&state));
        move |request| {
            let (status, text) = if request.uri().path() == "/health" {
                state.health_checks.fetch_add(1, Ordering::SeqCst);
                if state.healthy.load(Ordering::SeqCst) {
                    (StatusCode::OK, "healthy".to_owned())
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, "unhealthy".to_owned())
                }
            } else {
                state.served.fetch_add(1, Ordering::SeqCst);
                (StatusCode::OK, name.as_ref().to_owned())
            };
            let mut answer = Response::new(body::full(text));
            *answer.status_mut() = status;
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            answer.headers_mut().insert(CONTENT_TYPE, plain);
            std::future::ready(answer)
        }
    });
    NamedOrigin {
        name,
        state,
        origin,
    }
}
