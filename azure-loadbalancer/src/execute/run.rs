//! One reconciliation: rounds of reading, planning and writing.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tokio::time::sleep;

use super::executor::{Executor, ReconcileError};
use super::graph::{self, Written, is_overtaken};
use super::outcome::{Reconciled, WrittenAction};
use super::refusals::Refusals;
use crate::arm::{ArmError, ArmErrorKind};
use crate::config::Config;
use crate::node::Node;
use crate::plan::{Action, Deferred, Plan, Request, Snapshot, addresses_of_cluster};
use crate::service::{Service, ServiceKey};

pub(super) struct Run<'a> {
    executor: &'a Executor,
    report: Reconciled,
    refusals: Refusals,
}

/// How a round ended.
enum Ended {
    /// There is nothing to do, or nothing that can be done.
    AllDone,
    /// Something was written; there may be more to do.
    Wrote,
    /// Something was refused; the next plan is without whom that is held against.
    Refused,
    /// Somebody else has written, or is writing.
    Overtaken(Arc<ArmError>),
}

impl<'a> Run<'a> {
    pub(super) fn new(
        executor: &'a Executor,
        suspects: &BTreeSet<ServiceKey>,
        services: &[Service],
    ) -> Self {
        Self {
            executor,
            report: Reconciled::default(),
            refusals: Refusals::new(suspects, services, executor.options().max_splits),
        }
    }

    /// The services that writes are held against in the end.
    pub(super) fn suspects(&self) -> BTreeSet<ServiceKey> {
        self.refusals.held().map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn into_report(self) -> Reconciled {
        let mut report = self.report;
        for (service, error) in self.refusals.held() {
            let slot = report.failures.entry(service.clone());
            slot.or_insert_with(|| Arc::clone(error));
        }
        report
            .other_failures
            .extend(self.refusals.held_against_nobody().cloned());
        report
    }

    /// Each time that something is refused, or that those who were set aside have their turn, the rounds are counted anew: what one
    /// service is refused takes nothing from the others.
    pub(super) async fn rounds(
        &mut self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(), ReconcileError> {
        let mut rounds = 0;
        loop {
            let request = Request {
                once_ours: self.executor.addresses().clone(),
                ..self.refusals.request()
            };
            let (plan, snapshot) = self
                .executor
                .plan_request(config, &request, services, nodes)
                .await?;
            self.remember(config, services, &plan, &snapshot);
            self.show(&plan);
            let ended = if rounds >= self.executor.options().max_rounds {
                self.leave(&plan);
                Ended::AllDone
            } else {
                self.round(&plan).await
            };
            match ended {
                Ended::AllDone if self.refusals.release() => rounds = 0,
                Ended::AllDone => return Ok(()),
                Ended::Wrote => {
                    rounds += 1;
                    self.report.rounds += 1;
                }
                Ended::Refused => {
                    rounds = 0;
                    self.report.refusals += 1;
                }
                Ended::Overtaken(error) => {
                    if !self.wait(error).await {
                        self.leave(&plan);
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Remembers which addresses were the cluster's, as long as security rules lead there.
    fn remember(&self, config: &Config, services: &[Service], plan: &Plan, snapshot: &Snapshot) {
        let groups = snapshot.security_group.iter();
        let rules = groups.flat_map(|group| &group.properties.security_rules);
        let open: HashSet<&str> = rules
            .flat_map(|rule| rule.properties.destinations())
            .collect();
        let mut addresses = self.executor.addresses();
        addresses.retain(|address| open.contains(address.as_str()));
        // Without writes nothing becomes different from what can be read again.
        if !plan.actions.is_empty() {
            addresses.extend(addresses_of_cluster(config, services, snapshot));
        }
    }

    /// Waits until a plan can be made again after somebody else has written; false if that has happened too often.
    async fn wait(&mut self, error: Arc<ArmError>) -> bool {
        let options = self.executor.options();
        self.report.conflicts += 1;
        let conflicts = self.report.conflicts;
        let (kind, asked) = (error.kind(), error.retry_after());
        self.report.last_conflict = Some(error);
        if conflicts >= options.immediate_replans + options.backoff.tries {
            return false;
        }
        // What was only overtaken can be planned anew at once; what is under way takes its time.
        let is_immediate = kind == ArmErrorKind::PreconditionFailed
            && conflicts <= options.immediate_replans
            && asked.is_none();
        if !is_immediate {
            let waits = conflicts.saturating_sub(options.immediate_replans).max(1);
            let wait = options.backoff.wait(waits).max(asked.unwrap_or_default());
            sleep(wait.min(options.backoff.longest)).await;
        }
        true
    }

    /// Shows how services fare by the last plan.
    fn show(&mut self, plan: &Plan) {
        self.report.services.clone_from(&plan.services);
        self.report.warnings.clone_from(&plan.warnings);
        self.report.orphans.clone_from(&plan.orphans);
        self.report.left.clone_from(&plan.deferred);
    }

    async fn round(&mut self, plan: &Plan) -> Ended {
        let passed_over = self.refusals.passed_over(plan);
        if passed_over.len() == plan.actions.len() {
            return Ended::AllDone;
        }
        let parallel = self.executor.options().parallel_writes;
        let results = graph::run(self.executor.client(), plan, parallel, &passed_over).await;
        let (mut has_written, mut is_refused, mut overtaken) = (false, false, None);
        for (action, result) in plan.actions.iter().zip(results) {
            match result {
                Written::Done => {
                    has_written = true;
                    self.report
                        .written
                        .push(WrittenAction::of(&action.operation));
                }
                Written::Failed(error) if is_overtaken(&error) => overtaken = Some(error),
                Written::Failed(error) => {
                    is_refused = true;
                    if self.refusals.note(plan, action, &error) {
                        self.fail(action, &error);
                    }
                }
                Written::Skipped => {}
            }
        }
        match overtaken {
            Some(error) => Ended::Overtaken(error),
            None if is_refused => Ended::Refused,
            None if has_written => Ended::Wrote,
            None => {
                self.leave(plan);
                Ended::AllDone
            }
        }
    }

    /// Tells of a write that is not tried again: the client has tried already as often as it makes sense.
    fn fail(&mut self, action: &Action, error: &Arc<ArmError>) {
        if action.services.is_empty() {
            self.report.other_failures.push(Arc::clone(error));
        }
        for service in &action.services {
            let slot = self.report.failures.entry(service.clone());
            slot.or_insert_with(|| Arc::clone(error));
        }
    }

    /// Says which writes of a plan are left, but for those that were refused.
    fn leave(&mut self, plan: &Plan) {
        for action in &plan.actions {
            if self.refusals.passes_over(&action.operation) {
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
