//! Where services are reached, written into their status.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::client::KubernetesClient;
use crate::execute::{Observer, ReconcileError, Reconciled};
use crate::plan::{Ingress, ServiceOutcome};
use crate::service::ServiceKey;

/// Status writes at a time.
const AT_A_TIME: usize = 8;

/// Writes where services are reached into their status, whenever that has become different; made by
/// [`KubernetesClient::status_writer`].
///
/// It remembers what it has written. The first time it writes the status of all services that have a load balancer, which the API
/// server takes for no change if it says the same already.
pub struct StatusWriter<S> {
    client: KubernetesClient<S>,
    written: BTreeMap<ServiceKey, Vec<Ingress>>,
}

impl<S> StatusWriter<S> {
    pub(super) fn new(client: KubernetesClient<S>) -> Self {
        Self {
            client,
            written: BTreeMap::new(),
        }
    }

    /// Whether a status has to be written. A service that never had a load balancer is none of this writer's. What is wrong with
    /// a service does not take away where it is reached, as far as that is known.
    fn is_due(&self, key: &ServiceKey, outcome: &ServiceOutcome, is_wrong: bool) -> bool {
        if is_wrong && outcome.ingress.is_empty() {
            return false;
        }
        match self.written.get(key) {
            Some(written) => *written != outcome.ingress,
            None => outcome.load_balancer.is_some(),
        }
    }
}

#[async_trait]
impl<S, B> Observer for StatusWriter<S>
where
    S: Service<Request<Bytes>, Response = Response<B>> + Clone + Send + Sync,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn reconciled(&mut self, result: &Result<Reconciled, ReconcileError>) -> bool {
        let Ok(report) = result else {
            return true;
        };
        self.written
            .retain(|key, _| report.services.contains_key(key));
        let due: Vec<_> = report
            .services
            .iter()
            .filter(|(key, outcome)| self.is_due(key, outcome, report.error_of(key).is_some()))
            .map(|(key, outcome)| (key.clone(), outcome.ingress.clone()))
            .collect();
        let client = &self.client;
        let writes = stream::iter(due.into_iter().map(async |(key, ingress)| {
            let done = client.write_status(&key, &ingress).await;
            (key, ingress, done)
        }));
        let results: Vec<_> = writes.buffer_unordered(AT_A_TIME).collect().await;
        let mut is_done = true;
        for (key, ingress, done) in results {
            match done {
                Ok(()) => {
                    self.written.insert(key, ingress);
                }
                Err(error) => {
                    let cause = error.source().map(ToString::to_string);
                    tracing::warn!(%error, cause, service = %key, "a status is not written; it is tried again");
                    is_done = false;
                }
            }
        }
        is_done
    }
}

impl<S> fmt::Debug for StatusWriter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusWriter")
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
