//! Failing upgrades: they are rolled back, or stop until a client decides.

use super::UpgradePhase;
use crate::cluster::entity::{FailureAction, FailureReason, Intent, UpgradeMode, UpgradeState};
use crate::cluster::name::FabricName;
use crate::cluster::state::Cluster;

impl Cluster {
    /// Handles the end of a time limit, which may be that of an earlier domain or upgrade.
    pub(in crate::cluster) fn time_out_upgrade(&mut self, name: &FabricName, token: u64) {
        let Some(run) = self.upgrades.get(name) else {
            return;
        };
        if run.back || run.mode != UpgradeMode::Monitored {
            return;
        }
        let reason = if token == run.domain_timer {
            FailureReason::UpgradeDomainTimeout
        } else if token == run.overall_timer {
            FailureReason::OverallUpgradeTimeout
        } else {
            return;
        };
        match run.failure_action {
            FailureAction::Rollback => self.turn_back(name, reason),
            FailureAction::Manual => self.stop_inside_domain(name, reason),
        }
    }

    /// Rolls an upgrade back.
    pub(super) fn turn_back(&mut self, name: &FabricName, reason: FailureReason) {
        let token = self.next_sequence();
        let Some(run) = self.upgrades.get_mut(name) else {
            return;
        };
        run.back = true;
        // Only domains that have begun go back, the last one first.
        let begun = if run.phase == UpgradePhase::Begin || run.phase == UpgradePhase::Paused {
            run.index
        } else {
            run.index + 1
        };
        run.domains.truncate(begun);
        run.domains.reverse();
        run.index = 0;
        run.phase = UpgradePhase::Begin;
        run.token = token;
        run.domain_timer = 0;
        self.unheard = true;
        self.set_upgrade_state(name, UpgradeState::RollingBackInProgress);
        self.note_failure(name, reason);
        self.keep_all(name);
    }

    fn stop_inside_domain(&mut self, name: &FabricName, reason: FailureReason) {
        let drains = self
            .upgrades
            .get(name)
            .is_some_and(|run| run.phase == UpgradePhase::Draining);
        if drains {
            // A decision may take long, so replicas that are not yet closed return to service.
            self.keep_all(name);
        }
        self.stop_upgrade(name, UpgradePhase::Stopped, reason);
    }

    /// Stops an upgrade until a client resumes it or rolls it back. From then on it waits before each domain.
    pub(super) fn stop_upgrade(
        &mut self,
        name: &FabricName,
        phase: UpgradePhase,
        reason: FailureReason,
    ) {
        self.enter_phase(name, phase);
        if let Some(run) = self.upgrades.get_mut(name) {
            run.mode = UpgradeMode::UnmonitoredManual;
        }
        if let Some(upgrade) = self.upgrade_mut(name) {
            upgrade.mode = UpgradeMode::UnmonitoredManual;
        }
        self.set_upgrade_state(name, UpgradeState::RollingForwardPending);
        self.note_failure(name, reason);
    }

    fn note_failure(&mut self, name: &FabricName, reason: FailureReason) {
        let now = self.now;
        let why = match reason {
            FailureReason::None => "",
            FailureReason::Interrupted => "it was asked for",
            FailureReason::HealthCheck => "the health of the application is Error",
            FailureReason::UpgradeDomainTimeout => "a domain took longer than it may",
            FailureReason::OverallUpgradeTimeout => "the upgrade took longer than it may",
        };
        if let Some(upgrade) = self.upgrade_mut(name) {
            why.clone_into(&mut upgrade.failure);
            upgrade.failure_reason = reason;
            upgrade.failed_at = Some(now);
        }
    }

    /// Cancels the pending upgrade of all replicas of the application.
    fn keep_all(&mut self, name: &FabricName) {
        for key in self.replicas_of_application(name, |_| true) {
            if self
                .replica(key)
                .is_some_and(|replica| replica.intent == Intent::Upgrade)
            {
                self.keep(key);
            }
        }
    }
}
