//! The executor: it reads, plans and writes until no work is left.

use std::borrow::Cow;
use std::collections::BTreeSet;

use parking_lot::MutexGuard;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::graph;
use super::options::ExecutorOptions;
use super::outcome::{Executed, Reconciled};
use super::read::read_again;
use super::run::Run;
use crate::arm::{ArmClient, ArmError};
use crate::config::{Config, ConfigError, PoolMembership};
use crate::naming;
use crate::node::Node;
use crate::plan::{
    Forecast, Memory, Migration, Plan, Request, Snapshot, forecast_from, migrate_to_standard,
    plan_request,
};
use crate::service::{Service, ServiceKey};

/// An executor of plans for a cluster. Its reconciliations wait for each other, since load balancers and
/// security groups are written whole.
#[derive(Debug)]
pub struct Executor {
    client: ArmClient,
    config: Config,
    options: ExecutorOptions,
    /// The lock of the writer. It holds the services that the last rejection was attributed to.
    writer: Mutex<BTreeSet<ServiceKey>>,
    /// Resource groups in which public addresses were found.
    groups: parking_lot::Mutex<BTreeSet<String>>,
    /// The former addresses of the cluster.
    memory: parking_lot::Mutex<Memory>,
    /// The time since which pools keep members although no node takes part.
    kept_since: parking_lot::Mutex<Option<Instant>>,
}

/// The error of a reconciliation that could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The current resources cannot be read.
    #[error("the resources cannot be read")]
    Read(#[source] ArmError),
}

impl Executor {
    /// Creates an executor with the default options.
    ///
    /// # Errors
    ///
    /// The configuration is invalid.
    pub fn new(client: ArmClient, config: Config) -> Result<Self, ConfigError> {
        Self::with_options(client, config, ExecutorOptions::default())
    }

    /// Creates an executor.
    ///
    /// # Errors
    ///
    /// The configuration is invalid.
    pub fn with_options(
        client: ArmClient,
        config: Config,
        options: ExecutorOptions,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            client,
            config,
            options,
            writer: Mutex::default(),
            groups: parking_lot::Mutex::default(),
            memory: parking_lot::Mutex::default(),
            kept_since: parking_lot::Mutex::default(),
        })
    }

    /// Takes over the memory of another executor of the same cluster: its resource groups and former
    /// addresses. That of another cluster is ignored.
    #[must_use]
    pub fn continuing(self, previous: &Self) -> Self {
        let cluster = |config: &Config| {
            let Config {
                subscription_id,
                resource_group,
                cluster_name,
                ..
            } = config;
            [subscription_id, resource_group, cluster_name].map(|name| name.to_ascii_lowercase())
        };
        // The memory of another cluster would claim its addresses.
        if cluster(&self.config) == cluster(&previous.config) {
            self.groups().clone_from(&previous.groups());
            self.memory().clone_from(&previous.memory());
            *self.kept_since.lock() = *previous.kept_since.lock();
        }
        self
    }

    /// Returns the client, for the counts of calls.
    pub fn client(&self) -> &ArmClient {
        &self.client
    }

    pub(super) fn options(&self) -> &ExecutorOptions {
        &self.options
    }

    /// The configuration of the cluster.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Plans without writing. Returns the plan, and the snapshot that was read for it.
    ///
    /// # Errors
    ///
    /// [`ReconcileError::Read`] if the current resources cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn plan(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(Plan, Snapshot), ReconcileError> {
        self.plan_as(&self.config, services, nodes).await
    }

    /// Plans all writes of [`reconcile`](Self::reconcile), over all rounds, assuming no concurrent writes and
    /// no rejections. Reads once, and writes nothing.
    ///
    /// # Errors
    ///
    /// The current resources cannot be read.
    pub async fn forecast(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<Forecast, ReconcileError> {
        let services = &*checked(services);
        let snapshot = self.read(&self.config, services).await?;
        let memory = self.memory().clone();
        let request = Request::EVERYTHING;
        let rounds = self.options.max_rounds;
        let config = &self.config;
        Ok(forecast_from(
            config, &request, services, nodes, snapshot, memory, rounds,
        ))
    }

    /// Plans the rest of the migration from Basic to Standard load balancers. Writes nothing.
    ///
    /// # Errors
    ///
    /// The current resources cannot be read.
    pub async fn migration(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<Migration, ReconcileError> {
        // Machines are read to find what prevents the deletion of load balancers, whatever the kind of
        // membership.
        let reading = Config {
            backend_pool_type: PoolMembership::NetworkInterface,
            ..self.config.clone()
        };
        let services = &*checked(services);
        let snapshot = self.read(&reading, services).await?;
        let rounds = self.options.max_rounds;
        Ok(migrate_to_standard(
            &self.config,
            services,
            nodes,
            &snapshot,
            rounds,
        ))
    }

    async fn read(
        &self,
        config: &Config,
        services: &[Service],
    ) -> Result<Snapshot, ReconcileError> {
        let mut groups = self.groups().clone();
        let snapshot = read_again(&self.client, config, services, &mut groups)
            .await
            .map_err(ReconcileError::Read)?;
        *self.groups() = groups;
        Ok(snapshot)
    }

    pub(crate) async fn plan_as(
        &self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(Plan, Snapshot), ReconcileError> {
        let everything = Request::EVERYTHING;
        self.plan_request(config, &everything, services, nodes)
            .await
    }

    pub(super) async fn plan_request(
        &self,
        config: &Config,
        request: &Request,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(Plan, Snapshot), ReconcileError> {
        let services = &*checked(services);
        let snapshot = self.read(config, services).await?;
        let plan = plan_request(config, request, services, nodes, &snapshot);
        Ok((plan, snapshot))
    }

    /// Locks the groups. Every change is atomic, so a panic of another thread leaves them consistent.
    fn groups(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.groups.lock()
    }

    /// Locks the memory of former addresses. Every change is atomic, so a panic of another thread leaves it
    /// consistent.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }

    /// Remembers the current resources before a plan is carried out.
    pub(super) fn remember(
        &self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
        plan: &Plan,
        snapshot: &Snapshot,
    ) {
        let mut memory = self.memory();
        memory.remember(config, services, nodes, plan, snapshot);
    }

    /// Returns the time at which pools lose the members that they keep although no node takes part. `None` if
    /// they keep them.
    pub(super) fn pools_kept_until(&self) -> Option<Instant> {
        (*self.kept_since.lock())?.checked_add(self.config.empty_grace?)
    }

    /// Records whether pools keep members although no node takes part.
    pub(super) fn note_kept_pools(&self, are_kept: bool) {
        let mut since = self.kept_since.lock();
        *since = are_kept.then(|| since.unwrap_or_else(Instant::now));
    }

    /// Carries out the writes of one plan, of [`Steps`](crate::steps::Steps) for example, each once and after
    /// its prerequisites. Returns the result of each. Reads and plans nothing.
    ///
    /// # Cancel safety
    ///
    /// That of [`reconcile`](Self::reconcile).
    pub async fn execute(&self, plan: &Plan) -> Executed {
        // The lock lasts for the whole plan, so that writes of two plans never mix.
        let _only_writer = self.writer.lock().await;
        let before = self.client.counts();
        let parallel = self.options.parallel_writes;
        let results = graph::run(&self.client, plan, parallel, &BTreeSet::new()).await;
        Executed {
            actions: results.into_iter().map(Into::into).collect(),
            calls: self.client.counts().since(before),
        }
    }

    /// Makes all services match their requests: reads, plans and writes until nothing is left, at most
    /// [`ExecutorOptions::max_rounds`] times.
    ///
    /// A request that cannot be met, or a rejected write, does not block other services: after a rejection
    /// the next plan leaves out the service that it is attributed to. See [`Reconciled::errors`].
    ///
    /// # Errors
    ///
    /// The current resources cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Started writes may be carried out, others are not started. Every intermediate state is valid, and the
    /// next reconciliation continues from it.
    pub async fn reconcile(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<Reconciled, ReconcileError> {
        self.reconcile_as(&self.config, || services, nodes).await
    }

    /// Reconciles with this configuration. `services` is called only when it is this call's turn to write,
    /// since requests may change until then.
    pub(crate) async fn reconcile_as<S: AsRef<[Service]>>(
        &self,
        config: &Config,
        services: impl FnOnce() -> S,
        nodes: &[Node],
    ) -> Result<Reconciled, ReconcileError> {
        let mut suspects = self.writer.lock().await;
        // The services are evaluated under the lock: they may change while this call waits.
        let services = services();
        let services = services.as_ref();
        let before = self.client.counts();
        let mut run = Run::new(self, &suspects, services);
        run.rounds(config, services, nodes).await?;
        *suspects = run.suspects();
        let mut report = run.into_report();
        report.calls = self.client.counts().since(before);
        Ok(report)
    }
}

/// Returns the services, with a mark on those whose UID is no UUID, as for documents: what is there of them stays as
/// it is. What a plan would create could not be recognised as an orphan later.
fn checked(services: &[Service]) -> Cow<'_, [Service]> {
    let wrong = |service: &Service| match service.unreadable {
        None => naming::check_uid(&service.uid).err(),
        Some(_) => None,
    };
    if !services.iter().any(|service| wrong(service).is_some()) {
        return Cow::Borrowed(services);
    }
    let checked = services.iter().map(|service| {
        let unreadable = wrong(service).or_else(|| service.unreadable.clone());
        Service {
            unreadable,
            ..service.clone()
        }
    });
    Cow::Owned(checked.collect())
}
