//! The cloud interface of Kubernetes' controllers: one service at a time.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::config::{Config, OrphanPolicy};
use crate::execute::{Executor, ReconcileError, Reconciled, ServiceError};
use crate::node::Node;
use crate::plan::{Ingress, ServiceOutcome};
use crate::service::{Service, ServiceKey};

/// Load balancers of services, one service at a time: `get`, `ensure`, `update` and `ensure_deleted`.
///
/// It remembers the services of earlier calls, because load balancers and the security group depend on all of
/// them. Resources of unknown services stay as they are. [`reconcile_all`](Self::reconcile_all) handles all
/// services at once: it takes as many calls for a thousand services as for one.
///
/// # Cancel safety
///
/// That of [`Executor::reconcile`].
#[derive(Debug)]
pub struct LoadBalancerProvider {
    executor: Executor,
    /// The configuration, with a policy that keeps the resources of unknown services.
    config: Config,
    known: Mutex<BTreeMap<ServiceKey, Service>>,
}

/// The reason why a service does not have its load balancer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The current resources cannot be read.
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
    /// The request of the service cannot be met, or a write for it failed.
    #[error("service {service}")]
    Service {
        /// The service.
        service: ServiceKey,
        /// The reason.
        source: Box<ServiceError>,
    },
}

impl LoadBalancerProvider {
    /// Creates a provider that writes with an executor.
    pub fn new(executor: Executor) -> Self {
        let config = Config {
            orphans: OrphanPolicy::Report,
            ..executor.config().clone()
        };
        Self {
            executor,
            config,
            known: Mutex::default(),
        }
    }

    /// Returns the executor that carries out the plans.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Returns the addresses of a service, or `None` if it has no load balancer. Writes nothing.
    ///
    /// If only a part of a service's resources is left, for example a public address, the list is empty: the
    /// service is not gone yet.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Reconcile`] if the current resources cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn get(&self, service: &Service) -> Result<Option<Vec<Ingress>>, ProviderError> {
        let (plan, _) = self
            .executor
            .plan_as(&self.config, &self.with(service), &[])
            .await?;
        let outcome = plan.services.get(&service.key);
        Ok(outcome
            .filter(|outcome| outcome.exists)
            .map(|outcome| outcome.ingress.clone()))
    }

    /// Makes a service reachable on nodes, and returns its addresses.
    ///
    /// # Errors
    ///
    /// The current resources cannot be read, the request of the service cannot be met, or a write for it
    /// failed.
    pub async fn ensure(
        &self,
        service: &Service,
        nodes: &[Node],
    ) -> Result<Vec<Ingress>, ProviderError> {
        self.remember(service);
        // The services known when it is this call's turn: one that was deleted meanwhile is not created
        // again.
        let report = self
            .executor
            .reconcile_as(&self.config, || self.all(), nodes)
            .await?;
        let outcome = of(&report, service)?;
        Ok(outcome.ingress)
    }

    /// Updates a service like [`ensure`](Self::ensure).
    ///
    /// # Errors
    ///
    /// As of [`ensure`](Self::ensure).
    pub async fn update(
        &self,
        service: &Service,
        nodes: &[Node],
    ) -> Result<Vec<Ingress>, ProviderError> {
        self.ensure(service, nodes).await
    }

    /// Removes the resources of a service. A service without any is already deleted.
    ///
    /// # Errors
    ///
    /// The current resources cannot be read, or a write failed. Retry the call then.
    pub async fn ensure_deleted(
        &self,
        service: &Service,
        nodes: &[Node],
    ) -> Result<(), ProviderError> {
        let going = Service {
            deleting: true,
            ..service.clone()
        };
        self.remember(&going);
        let report = self
            .executor
            .reconcile_as(&self.config, || self.all(), nodes)
            .await?;
        of(&report, &going)?;
        let mut known = self.known.lock();
        // The service may have been requested again.
        if known.get(&service.key).is_some_and(|known| known.deleting) {
            known.remove(&service.key);
        }
        Ok(())
    }

    /// Makes all services reachable at once. Resources of other services count as orphans; see [`Config::orphans`].
    ///
    /// # Errors
    ///
    /// The current resources cannot be read. The report has the outcome of each service.
    pub async fn reconcile_all(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<Reconciled, ProviderError> {
        let all = services
            .iter()
            .map(|service| (service.key.clone(), service.clone()));
        *self.known.lock() = all.collect();
        Ok(self.executor.reconcile(services, nodes).await?)
    }

    fn remember(&self, service: &Service) {
        let mut known = self.known.lock();
        known.insert(service.key.clone(), service.clone());
    }

    /// Returns all known services.
    fn all(&self) -> Vec<Service> {
        let known = self.known.lock();
        known.values().cloned().collect()
    }

    /// Returns all known services, with this one in its present form.
    fn with(&self, service: &Service) -> Vec<Service> {
        let known = self.known.lock();
        let others = known.values().filter(|other| other.key != service.key);
        others.chain([service]).cloned().collect()
    }
}

/// Returns the outcome of a service, or its error.
fn of(report: &Reconciled, service: &Service) -> Result<ServiceOutcome, ProviderError> {
    match report.error_of(&service.key) {
        Some(source) => Err(ProviderError::Service {
            service: service.key.clone(),
            source: Box::new(source),
        }),
        None => Ok(report
            .services
            .get(&service.key)
            .cloned()
            .unwrap_or_default()),
    }
}
