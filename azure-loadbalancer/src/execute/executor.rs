//! Read, plan, write, until there is nothing left to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::sleep;

use super::graph::{self, Written, is_overtaken};
use super::options::ExecutorOptions;
use super::outcome::{Reconciled, WrittenAction};
use super::read::read_snapshot;
use crate::arm::{ArmClient, ArmError, ArmErrorKind};
use crate::config::{Config, ConfigError};
use crate::node::Node;
use crate::plan::{Action, Deferred, Operation, Plan, Snapshot, plan};
use crate::service::Service;

/// Carries out plans for a cluster. It is the only writer among its users: reconciliations wait for each other, since load
/// balancers and security groups are written whole.
#[derive(Debug)]
pub struct Executor {
    client: ArmClient,
    config: Config,
    options: ExecutorOptions,
    writer: Mutex<()>,
}

/// A reconciliation that could not be made at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// What is there cannot be read.
    #[error("what is there cannot be read")]
    Read(#[source] ArmError),
}

impl Executor {
    /// An executor with the usual options.
    ///
    /// # Errors
    ///
    /// The configuration cannot be used.
    pub fn new(client: ArmClient, config: Config) -> Result<Self, ConfigError> {
        Self::with_options(client, config, ExecutorOptions::default())
    }

    /// An executor.
    ///
    /// # Errors
    ///
    /// The configuration cannot be used.
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
            writer: Mutex::new(()),
        })
    }

    /// The client that it uses, for the counts of calls.
    pub fn client(&self) -> &ArmClient {
        &self.client
    }

    /// The configuration of the cluster.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What would be written, and what was read for it. Nothing is written.
    ///
    /// # Errors
    ///
    /// What is there cannot be read.
    pub async fn plan(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(Plan, Snapshot), ReconcileError> {
        self.plan_as(&self.config, services, nodes).await
    }

    pub(crate) async fn plan_as(
        &self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(Plan, Snapshot), ReconcileError> {
        let snapshot = read_snapshot(&self.client, config, services)
            .await
            .map_err(ReconcileError::Read)?;
        Ok((plan(config, services, nodes, &snapshot), snapshot))
    }

    /// Makes everything as the services ask for: reads, plans and writes until nothing is left, at most
    /// [`ExecutorOptions::max_rounds`] times.
    ///
    /// What one service cannot have, or what is refused for it, does not keep others from having theirs: see
    /// [`Reconciled::errors`].
    ///
    /// # Errors
    ///
    /// What is there cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Writes that were begun may be carried out, others are not begun. Every state in between is one that the resource manager
    /// accepts and that the next reconciliation continues from.
    pub async fn reconcile(
        &self,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<Reconciled, ReconcileError> {
        self.reconcile_as(&self.config, services, nodes).await
    }

    pub(crate) async fn reconcile_as(
        &self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<Reconciled, ReconcileError> {
        let _only_writer = self.writer.lock().await;
        let before = self.client.counts();
        let mut run = Run {
            executor: self,
            report: Reconciled::default(),
            refused: Vec::new(),
        };
        run.rounds(config, services, nodes).await?;
        let mut report = run.report;
        report.calls = self.client.counts().since(before);
        Ok(report)
    }
}

/// One reconciliation.
struct Run<'a> {
    executor: &'a Executor,
    report: Reconciled,
    /// What will not be accepted however often it is tried.
    refused: Vec<Operation>,
}

/// How a round ended.
enum Ended {
    /// There is nothing to do, or nothing that can be done.
    AllDone,
    /// Something was written; there may be more to do.
    Wrote,
    /// Somebody else has written, or is writing.
    Overtaken(ArmErrorKind),
}

impl Run<'_> {
    async fn rounds(
        &mut self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(), ReconcileError> {
        let options = &self.executor.options;
        let mut rounds = 0;
        loop {
            let (plan, _) = self.executor.plan_as(config, services, nodes).await?;
            self.show(&plan);
            if rounds >= options.max_rounds {
                self.leave(&plan, &BTreeSet::new());
                return Ok(());
            }
            match self.round(&plan).await {
                Ended::AllDone => return Ok(()),
                Ended::Wrote => {
                    rounds += 1;
                    self.report.rounds = rounds;
                }
                Ended::Overtaken(kind) => {
                    self.report.conflicts += 1;
                    let conflicts = self.report.conflicts;
                    if conflicts >= options.immediate_replans + options.backoff.tries {
                        self.leave(&plan, &BTreeSet::new());
                        return Ok(());
                    }
                    // What was only overtaken can be planned anew at once; what is under way takes its time.
                    let is_immediate = kind == ArmErrorKind::PreconditionFailed
                        && conflicts <= options.immediate_replans;
                    if !is_immediate {
                        let waits = conflicts.saturating_sub(options.immediate_replans).max(1);
                        sleep(options.backoff.wait(waits)).await;
                    }
                }
            }
        }
    }

    /// Shows how services fare by the last plan.
    fn show(&mut self, plan: &Plan) {
        self.report.services.clone_from(&plan.services);
        self.report.warnings.clone_from(&plan.warnings);
        self.report.orphans.clone_from(&plan.orphans);
        self.report.left.clone_from(&plan.deferred);
    }

    async fn round(&mut self, plan: &Plan) -> Ended {
        let passed_over: BTreeSet<usize> = (0..plan.actions.len())
            .filter(|index| {
                plan.actions
                    .get(*index)
                    .is_some_and(|action| self.refused.contains(&action.operation))
            })
            .collect();
        if passed_over.len() == plan.actions.len() {
            self.leave(plan, &passed_over);
            return Ended::AllDone;
        }
        let parallel = self.executor.options.parallel_writes;
        let results = graph::run(&self.executor.client, plan, parallel, &passed_over).await;
        let (mut has_written, mut overtaken) = (false, None);
        for (action, result) in plan.actions.iter().zip(results) {
            match result {
                Written::Done => {
                    has_written = true;
                    self.report
                        .written
                        .push(WrittenAction::of(&action.operation));
                }
                Written::Failed(error) if is_overtaken(&error) => overtaken = Some(error.kind()),
                Written::Failed(error) => self.fail(action, error),
                Written::Skipped => {}
            }
        }
        match overtaken {
            Some(kind) => Ended::Overtaken(kind),
            None if has_written => Ended::Wrote,
            None => {
                self.leave(plan, &BTreeSet::new());
                Ended::AllDone
            }
        }
    }

    fn fail(&mut self, action: &Action, error: ArmError) {
        let error = Arc::new(error);
        if action.services.is_empty() {
            self.report.other_failures.push(Arc::clone(&error));
        }
        for service in &action.services {
            let slot = self.report.failures.entry(service.clone());
            slot.or_insert_with(|| Arc::clone(&error));
        }
        // The client has tried already as often as it makes sense.
        self.refused.push(action.operation.clone());
    }

    /// Says which writes of a plan are left, but for those that were refused.
    fn leave(&mut self, plan: &Plan, refused: &BTreeSet<usize>) {
        for (index, action) in plan.actions.iter().enumerate() {
            if refused.contains(&index) || self.refused.contains(&action.operation) {
                continue;
            }
            let what = format!("{} was not written", action.operation);
            if action.services.is_empty() {
                self.report.left.push(Deferred {
                    service: None,
                    what,
                });
                continue;
            }
            let left = action.services.iter().map(|service| Deferred {
                service: Some(service.clone()),
                what: what.clone(),
            });
            self.report.left.extend(left);
        }
    }
}
