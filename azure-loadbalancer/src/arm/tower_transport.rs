//! A transport over a `tower` service.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::{Transport, TransportError, TransportErrorKind};

/// A transport over a `tower` service with complete bodies: a stack of layers, a test's function, or the
/// emulator in the same process.
#[derive(Clone)]
pub struct TowerTransport<S> {
    service: S,
}

impl<S> TowerTransport<S> {
    /// Creates a transport over a service, which is cloned for every request.
    pub fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S> fmt::Debug for TowerTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowerTransport").finish_non_exhaustive()
    }
}

#[async_trait]
impl<S> Transport for TowerTransport<S>
where
    S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
{
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        let failed = |error: S::Error| {
            TransportError::new(
                TransportErrorKind::Interrupted,
                "the service did not answer",
            )
            .with_source(error)
        };
        let mut service = self.service.clone();
        poll_fn(|context| service.poll_ready(context))
            .await
            .map_err(failed)?;
        let response = service.call(request).await.map_err(failed)?;
        if response.body().len() > max_body {
            return Err(TransportError::too_large(max_body));
        }
        Ok(response)
    }
}
