//! A reconciliation: rounds of reading, planning and writing.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::executor::{Executor, ReconcileError};
use super::graph::{self, Written, is_overtaken};
use super::outcome::{Reconciled, WrittenAction};
use super::rejections::Rejections;
use crate::arm::{ArmError, ArmErrorKind};
use crate::config::Config;
use crate::node::Node;
use crate::plan::{Action, Deferred, Plan, Request, Snapshot};
use crate::resources::BackendAddressPool;
use crate::service::{Service, ServiceKey};

pub(super) struct Run<'a> {
    executor: &'a Executor,
    report: Reconciled,
    rejections: Rejections,
    /// The services whose load balancer has no member, according to the last read.
    without_members: BTreeSet<ServiceKey>,
}

/// The result of a round.
enum Ended {
    /// No work is left, or none that can be done.
    AllDone,
    /// A write succeeded, and more work may be left.
    Wrote,
    /// A write was rejected. The next plan leaves out the parts that the rejection is attributed to.
    Rejected,
    /// Another client has written, or is writing.
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
            rejections: Rejections::new(suspects, services, executor.options().max_splits),
            without_members: BTreeSet::new(),
        }
    }

    /// Returns the services that rejections are attributed to in the end.
    pub(super) fn suspects(&self) -> BTreeSet<ServiceKey> {
        self.rejections.held().map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn into_report(self) -> Reconciled {
        let mut report = self.report;
        let rejected = self.rejections.held_members();
        report.rejected_nodes = rejected
            .map(|(name, error)| (name.clone(), Arc::clone(error)))
            .collect();
        if let Some(error) = report.rejected_nodes.values().next() {
            // No backend responds there, so the address is not reported.
            for key in self.without_members {
                if let Some(outcome) = report.services.get_mut(&key) {
                    outcome.ingress.clear();
                }
                let slot = report.failures.entry(key);
                slot.or_insert_with(|| Arc::clone(error));
            }
        }
        for (service, error) in self.rejections.held() {
            let slot = report.failures.entry(service.clone());
            slot.or_insert_with(|| Arc::clone(error));
        }
        report
            .other_failures
            .extend(self.rejections.held_against_nobody().cloned());
        report
    }

    /// Runs rounds until the result is final. The count restarts after each rejection, and when a set-aside
    /// group gets its turn, so that one service's failures do not use up the rounds of others.
    pub(super) async fn rounds(
        &mut self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> Result<(), ReconcileError> {
        let mut rounds = 0;
        let kept_until = self.executor.pools_kept_until();
        // The grace time is checked once per reconciliation, so that its rounds agree.
        let empties_pools = kept_until.is_some_and(|until| until <= Instant::now());
        loop {
            let request = Request {
                empties_pools,
                once_ours: self.executor.memory().addresses().clone(),
                ..self.rejections.request()
            };
            let (plan, snapshot) = self
                .executor
                .plan_request(config, &request, services, nodes)
                .await?;
            // The addresses are remembered before a write changes them.
            self.executor
                .remember(config, services, nodes, &plan, &snapshot);
            self.show(config, &plan, &snapshot);
            self.executor.note_kept_pools(plan.pools_kept);
            let ended = if rounds >= self.executor.options().max_rounds {
                self.leave(&plan);
                Ended::AllDone
            } else {
                self.round(&request, &plan).await
            };
            match ended {
                Ended::AllDone if self.rejections.release() => rounds = 0,
                Ended::AllDone => return Ok(()),
                Ended::Wrote => {
                    rounds += 1;
                    self.report.rounds += 1;
                }
                Ended::Rejected => {
                    rounds = 0;
                    self.report.rejections += 1;
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

    /// Waits until a new plan can be made after a conflict. Returns false after too many conflicts.
    async fn wait(&mut self, error: Arc<ArmError>) -> bool {
        let options = self.executor.options();
        self.report.conflicts += 1;
        let conflicts = self.report.conflicts;
        let (kind, asked) = (error.kind(), error.retry_after());
        self.report.last_conflict = Some(error);
        if conflicts >= options.immediate_replans + options.backoff.tries {
            return false;
        }
        // After a mere conflict of etags a new plan can follow at once; a write in progress takes time.
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

    /// Reports the state of services by the last plan.
    fn show(&mut self, config: &Config, plan: &Plan, snapshot: &Snapshot) {
        self.report.services.clone_from(&plan.services);
        self.report.warnings.clone_from(&plan.warnings);
        self.report.orphans.clone_from(&plan.orphans);
        self.report.left.clone_from(&plan.deferred);
        self.without_members = without_members(config, plan, snapshot);
    }

    async fn round(&mut self, request: &Request, plan: &Plan) -> Ended {
        let passed_over = self.rejections.passed_over(plan);
        // No write is left, or only ones that were rejected before.
        if passed_over.len() == plan.actions.len() {
            return Ended::AllDone;
        }
        let parallel = self.executor.options().parallel_writes;
        let results = graph::run(self.executor.client(), plan, parallel, &passed_over).await;
        let (mut has_written, mut is_rejected, mut overtaken) = (false, false, None);
        for (action, result) in plan.actions.iter().zip(results) {
            match result {
                Written::Done => {
                    has_written = true;
                    self.report
                        .written
                        .push(WrittenAction::of(&action.operation));
                }
                // A conflict counts more than rejections: they may disappear with the new plan.
                Written::Failed(error) if is_overtaken(&error) => overtaken = Some(error),
                Written::Failed(error) => {
                    is_rejected = true;
                    if self.rejections.note(request, plan, action, &error) {
                        self.fail(action, &error);
                    }
                }
                Written::Skipped => {}
            }
        }
        match overtaken {
            Some(error) => Ended::Overtaken(error),
            None if is_rejected => Ended::Rejected,
            None if has_written => Ended::Wrote,
            None => {
                self.leave(plan);
                Ended::AllDone
            }
        }
    }

    /// Records a failed write that is not retried: the client has already retried it as often as sensible.
    fn fail(&mut self, action: &Action, error: &Arc<ArmError>) {
        if action.services.is_empty() {
            self.report.other_failures.push(Arc::clone(error));
        }
        for service in &action.services {
            let slot = self.report.failures.entry(service.clone());
            slot.or_insert_with(|| Arc::clone(error));
        }
    }

    /// Records the remaining writes of a plan, except for the rejected ones.
    fn leave(&mut self, plan: &Plan) {
        for action in &plan.actions {
            if self.rejections.passes_over(&action.operation) {
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

/// Returns the services on load balancers whose pool is empty.
fn without_members(config: &Config, plan: &Plan, snapshot: &Snapshot) -> BTreeSet<ServiceKey> {
    let is_empty = |pool: &&BackendAddressPool| {
        let interfaces = pool.properties.other.get("backendIPConfigurations");
        let entries = &pool.properties.load_balancer_backend_addresses;
        entries.as_ref().is_none_or(Vec::is_empty)
            && interfaces
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
    };
    let empty: HashSet<String> = snapshot
        .load_balancers
        .iter()
        .filter(|balancer| {
            let mut pools = balancer.properties.backend_address_pools.iter();
            let pool = pools.find(|pool| pool.is_named(&config.cluster_name));
            pool.as_ref().is_some_and(is_empty)
        })
        .map(|balancer| balancer.name.to_ascii_lowercase())
        .collect();
    let on_empty = plan.services.iter().filter(|(_, outcome)| {
        let on = outcome.load_balancer.as_ref();
        on.is_some_and(|name| empty.contains(&name.to_ascii_lowercase()))
    });
    on_empty.map(|(key, _)| key.clone()).collect()
}
