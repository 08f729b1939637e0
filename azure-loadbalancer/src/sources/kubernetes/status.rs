//! The writer of service statuses: the addresses at which services are reached.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::client::KubernetesClient;
use super::events::Events;
use crate::execute::{Observer, ReconcileError, Reconciled};
use crate::plan::{Ingress, ServiceOutcome};
use crate::service::ServiceKey;

/// The maximum number of concurrent status writes.
const AT_A_TIME: usize = 8;

/// The maximum number of events after one reconciliation.
const MOST_EVENTS: usize = 32;

/// The time before the same status is written again. Another program may be writing it as well, and two that
/// disagree must not keep the API server busy.
const REWRITE: Duration = Duration::from_secs(60);

/// A writer of the addresses of services into their status, whenever they differ. Created by
/// [`KubernetesClient::status_writer`].
///
/// The current status is part of the services themselves ([`Service::published`](crate::Service::published)).
/// A status that another program has changed is written again, and so is that of a service that has stopped
/// requesting a load balancer while no program was running. For a service without a status, it is written
/// when it differs from the last one written.
pub struct StatusWriter<S> {
    client: KubernetesClient<S>,
    written: BTreeMap<ServiceKey, WrittenStatus>,
    puts_finalizers: bool,
    events: Option<Events>,
}

/// The last written status.
#[derive(Debug)]
struct WrittenStatus {
    ingress: Vec<Ingress>,
    at: Instant,
}

/// The decision to write a status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    No,
    Now,
    /// The status is due, but was written a moment ago.
    Later,
}

impl<S> StatusWriter<S> {
    pub(super) fn new(client: KubernetesClient<S>) -> Self {
        Self {
            client,
            written: BTreeMap::new(),
            puts_finalizers: false,
            events: None,
        }
    }

    /// Adds Kubernetes' finalizer to services that have a load balancer, so that a service is not gone before
    /// its resources are. Default: an existing finalizer is only removed, once no resources are left.
    #[must_use]
    pub fn with_finalizers(mut self) -> Self {
        self.puts_finalizers = true;
        self
    }

    /// Writes an event for a service whose request cannot be met, once while the reason stays the same, and
    /// one when it is met. Nothing waits for events: a failed write is logged and forgotten. Default: no
    /// events.
    #[must_use]
    pub fn with_events(mut self) -> Self {
        self.events = Some(Events::default());
        self
    }

    /// Returns true if the finalizer of a service has to be added, false if it has to be removed. `None` if
    /// it is correct.
    fn finalizer_due(&self, outcome: &ServiceOutcome, is_wrong: bool) -> Option<bool> {
        match (outcome.has_finalizer, outcome.is_wanted) {
            (false, true) if self.puts_finalizers && outcome.exists => Some(true),
            // The finalizer stays while resources may be left.
            (true, false) if !outcome.exists && !is_wrong => Some(false),
            _ => None,
        }
    }

    /// Decides on writing the status. An error of a service does not remove its known addresses. Without a
    /// status to compare with, a service that never had a load balancer is left alone.
    fn due(&self, key: &ServiceKey, outcome: &ServiceOutcome, is_wrong: bool) -> Due {
        if is_wrong && outcome.ingress.is_empty() {
            return Due::No;
        }
        let written = self.written.get(key);
        let is_written = written.is_some_and(|written| written.ingress == outcome.ingress);
        let is_due = match &outcome.published {
            Some(published) => {
                let wanted = outcome.ingress.iter().map(|one| one.ip.to_string());
                !wanted.eq(published.iter().cloned())
            }
            None => !is_written && (written.is_some() || outcome.load_balancer.is_some()),
        };
        let is_recent = written.is_some_and(|written| written.at.elapsed() < REWRITE);
        match (is_due, is_written && is_recent) {
            (false, _) => Due::No,
            (true, false) => Due::Now,
            (true, true) => Due::Later,
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
        // Deleted services are forgotten, so that the map stays bounded.
        self.written
            .retain(|key, _| report.services.contains_key(key));
        let mut due = Vec::new();
        let mut is_done = true;
        for (key, outcome) in &report.services {
            match self.due(key, outcome, report.error_of(key).is_some()) {
                Due::No => {}
                Due::Now => due.push((key.clone(), outcome.ingress.clone())),
                Due::Later => is_done = false,
            }
        }
        let news = self.events.as_mut().map(|events| events.news(report));
        for (key, event) in news.into_iter().flatten().take(MOST_EVENTS) {
            if let Err(error) = self.client.write_event(&key.namespace, &event).await {
                let cause = error.source().map(ToString::to_string);
                tracing::warn!(%error, cause, service = %key, "an event is not written");
                // The API server is unavailable for events, so the others would fail as well.
                break;
            }
        }
        let finalizers = report.services.iter().filter_map(|(key, outcome)| {
            let due = self.finalizer_due(outcome, report.error_of(key).is_some())?;
            Some((key.clone(), due))
        });
        let finalizers: Vec<_> = finalizers.collect();
        let client = &self.client;
        let patches = stream::iter(finalizers.into_iter().map(async |(key, is_there)| {
            let done = client.write_finalizer(&key, is_there).await;
            (key, done)
        }));
        let patched: Vec<_> = patches.buffer_unordered(AT_A_TIME).collect().await;
        for (key, done) in patched {
            if let Err(error) = done {
                let cause = error.source().map(ToString::to_string);
                tracing::warn!(%error, cause, service = %key, "a finalizer is not written; it is tried again");
                is_done = false;
            }
        }
        let writes = stream::iter(due.into_iter().map(async |(key, ingress)| {
            let done = client.write_status(&key, &ingress).await;
            (key, ingress, done)
        }));
        let results: Vec<_> = writes.buffer_unordered(AT_A_TIME).collect().await;
        for (key, ingress, done) in results {
            match done {
                Ok(()) => {
                    let at = Instant::now();
                    self.written.insert(key, WrittenStatus { ingress, at });
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
