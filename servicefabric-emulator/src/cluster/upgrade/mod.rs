//! Rolling upgrades of applications: one upgrade domain after the other.
//!
//! In each domain the instances whose packages change are drained, primaries hand over, and the nodes replace
//! the packages. All replicas have to be ready again before the next domain begins. Packages that do not
//! change keep running.

mod domain;
mod failure;
mod lookup;

use std::collections::BTreeSet;

use super::applications::check_parameters;
use super::entity::{
    ApplicationStatus, ApplicationUpgrade, FailureAction, FailureReason, ServiceStatus,
    UpgradeDomainProgress, UpgradeDomainState, UpgradeMode, UpgradeState,
};
use super::error::{ErrorCode, FabricError};
use super::name::FabricName;
use super::request::UpgradeRequest;
use super::state::Cluster;
use super::timer::ClusterTimer;
use crate::health::{EntityKey, HealthState};
use crate::hosting::Span;

/// An upgrade in progress.
#[derive(Clone, Debug)]
pub(super) struct UpgradeRun {
    mode: UpgradeMode,
    wait: Span,
    domain_timeout: Span,
    failure_action: FailureAction,
    from: String,
    to: String,
    /// True if the upgrade is being rolled back.
    back: bool,
    /// The domains, in the order of this direction.
    domains: Vec<String>,
    /// The index of the current domain.
    index: usize,
    phase: UpgradePhase,
    /// The token that distinguishes this wait from all others, including those of other upgrades of the
    /// application. Timers are never cancelled.
    token: u64,
    /// The token of the domain's time limit.
    domain_timer: u64,
    /// The token of the overall time limit.
    overall_timer: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpgradePhase {
    /// The domain is about to begin.
    Begin,
    /// Instances are drained.
    Draining,
    /// Packages and replicas return.
    Opening,
    /// All replicas are ready, and health has time to show.
    Settling,
    /// The upgrade waits for a request to continue.
    Paused,
    /// The same as `Paused`, in the middle of a domain.
    Stopped,
}

impl UpgradePhase {
    fn waits_for_somebody(self) -> bool {
        matches!(self, Self::Paused | Self::Stopped)
    }
}

impl UpgradeRun {
    pub(super) fn versions(&self) -> [&str; 2] {
        [&self.from, &self.to]
    }

    pub(super) fn uses_version(&self, version: &str) -> bool {
        self.from == version || self.to == version
    }

    fn target(&self) -> &str {
        if self.back { &self.from } else { &self.to }
    }
}

impl Cluster {
    /// Starts a rolling upgrade of an application to another version of its type, to other parameters, or
    /// both.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`, `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`,
    /// `FABRIC_E_APPLICATION_UPGRADE_IN_PROGRESS`, `FABRIC_E_APPLICATION_ALREADY_IN_TARGET_VERSION`;
    /// `E_INVALIDARG` for unknown parameters, and for a version without a type that a service has.
    pub fn upgrade_application(
        &mut self,
        name: &FabricName,
        request: UpgradeRequest,
    ) -> Result<(), FabricError> {
        let application = self.existing_application(name)?;
        if self.upgrades.contains_key(name) {
            return Err(FabricError::new(
                ErrorCode::ApplicationUpgradeInProgress,
                format!("application '{name}' is being upgraded"),
            ));
        }
        let target = self.application_type(&application.type_name, &request.to_version)?;
        check_parameters(target, &request.parameters)?;
        // The services survive the upgrade, so the target version has to declare their types.
        for service in application
            .services
            .iter()
            .filter_map(|name| self.services.get(name))
        {
            let found = target.service_type(&service.type_name);
            let keeps = found.is_some_and(|(manifest, declared)| {
                manifest.name == service.manifest_name && declared.kind == service.kind
            });
            if !keeps {
                return Err(FabricError::invalid_argument(format!(
                    "version '{}' does not declare service type '{}' as before, which '{}' has",
                    request.to_version, service.type_name, service.name
                )));
            }
        }
        if application.type_version == request.to_version
            && application.parameters == request.parameters
        {
            return Err(FabricError::new(
                ErrorCode::ApplicationAlreadyInTargetVersion,
                format!("application '{name}' is already as the upgrade would make it"),
            ));
        }
        let nodes = self.nodes.values();
        // The domains are upgraded in the order of their names.
        let domains: BTreeSet<&String> = nodes.map(|entry| &entry.node.upgrade_domain).collect();
        let domains: Vec<String> = domains.into_iter().cloned().collect();
        let progress = domains.iter().map(|name| UpgradeDomainProgress {
            name: name.clone(),
            state: UpgradeDomainState::Pending,
        });
        let upgrade = ApplicationUpgrade {
            state: UpgradeState::RollingForwardInProgress,
            mode: request.mode,
            from_version: application.type_version.clone(),
            from_parameters: application.parameters.clone(),
            to_version: request.to_version.clone(),
            to_parameters: request.parameters,
            domains: progress.collect(),
            started_at: self.now,
            finished_at: None,
            domain_started_at: self.now,
            domain_finished_at: None,
            failure: String::new(),
            failure_reason: FailureReason::None,
            failed_at: None,
        };
        let (token, overall_timer) = (self.next_sequence(), self.next_sequence());
        let run = UpgradeRun {
            mode: request.mode,
            wait: request.wait,
            domain_timeout: request.domain_timeout,
            failure_action: request.failure_action,
            from: upgrade.from_version.clone(),
            to: request.to_version,
            back: false,
            domains,
            index: 0,
            phase: UpgradePhase::Begin,
            token,
            domain_timer: 0,
            overall_timer,
        };
        self.upgrades.insert(name.clone(), run);
        self.set_upgrade_status(name, ApplicationStatus::Upgrading, ServiceStatus::Upgrading);
        if let Some(application) = self.applications.get_mut(name) {
            application.upgrade = Some(upgrade);
        }
        self.plan(
            request.timeout,
            ClusterTimer::UpgradeTimeout(name.clone(), overall_timer),
        );
        self.settle();
        Ok(())
    }

    /// Lets a waiting upgrade continue with the next domain.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`; `FABRIC_E_APPLICATION_NOT_UPGRADING` when no upgrade waits.
    pub fn resume_upgrade(&mut self, name: &FabricName) -> Result<(), FabricError> {
        self.existing_application(name)?;
        let run = self
            .upgrades
            .get_mut(name)
            .filter(|run| run.phase.waits_for_somebody());
        let Some(run) = run else {
            return Err(not_upgrading(name));
        };
        run.phase = UpgradePhase::Begin;
        self.set_upgrade_state(name, UpgradeState::RollingForwardInProgress);
        self.settle();
        Ok(())
    }

    /// Rolls an upgrade back: the domains with the new version get the old one again.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`; `FABRIC_E_APPLICATION_NOT_UPGRADING` if no upgrade can be rolled
    /// back.
    pub fn roll_back_upgrade(&mut self, name: &FabricName) -> Result<(), FabricError> {
        self.existing_application(name)?;
        if self.upgrades.get(name).is_none_or(|run| run.back) {
            return Err(not_upgrading(name));
        }
        self.turn_back(name, FailureReason::Interrupted);
        self.settle();
        Ok(())
    }

    /// Advances every upgrade as far as possible now.
    pub(super) fn go_on_with_upgrades(&mut self) {
        let names: Vec<FabricName> = self.upgrades.keys().cloned().collect();
        for name in names {
            // A domain without replicas ends at once, so several domains may pass here.
            while self.go_on_with_upgrade(&name) {}
        }
    }

    /// Carries out one step of an upgrade. Returns false if it has to wait.
    fn go_on_with_upgrade(&mut self, name: &FabricName) -> bool {
        let Some(run) = self.upgrades.get(name) else {
            return false;
        };
        if run.phase.waits_for_somebody() {
            return false;
        }
        let Some(domain) = run.domains.get(run.index).cloned() else {
            self.finish_upgrade(name);
            return false;
        };
        match run.phase {
            UpgradePhase::Begin => {
                self.begin_domain(name, &domain);
                true
            }
            UpgradePhase::Opening if self.is_domain_ready(name, &domain) => {
                let wait = run.wait;
                if wait == Span::ZERO {
                    self.finish_domain(name, &domain);
                } else {
                    let token = self.enter_phase(name, UpgradePhase::Settling);
                    self.plan(wait, ClusterTimer::UpgradeWait(name.clone(), token));
                }
                true
            }
            UpgradePhase::Opening
            | UpgradePhase::Draining
            | UpgradePhase::Settling
            | UpgradePhase::Paused
            | UpgradePhase::Stopped => false,
        }
    }

    fn finish_domain(&mut self, name: &FabricName, domain: &str) {
        let health = self.health_state(&EntityKey::Application(name.clone()));
        let Some(run) = self.upgrades.get_mut(name) else {
            return;
        };
        let failed =
            run.mode == UpgradeMode::Monitored && !run.back && health == HealthState::Error;
        if failed && run.failure_action == FailureAction::Rollback {
            self.turn_back(name, FailureReason::HealthCheck);
            return;
        }
        run.index += 1;
        run.domain_timer = 0;
        let last = run.index == run.domains.len();
        let pause = run.mode == UpgradeMode::UnmonitoredManual && !run.back && !last;
        // A domain that was rolled back is as it was before the upgrade.
        let state = if run.back {
            UpgradeDomainState::Pending
        } else {
            UpgradeDomainState::Completed
        };
        let now = self.now;
        self.enter_phase(
            name,
            if pause {
                UpgradePhase::Paused
            } else {
                UpgradePhase::Begin
            },
        );
        self.set_domain_state(name, domain, state);
        if let Some(upgrade) = self.upgrade_mut(name) {
            upgrade.domain_finished_at = Some(now);
        }
        if failed {
            self.stop_upgrade(name, UpgradePhase::Paused, FailureReason::HealthCheck);
        } else if pause {
            self.set_upgrade_state(name, UpgradeState::RollingForwardPending);
        }
    }

    fn finish_upgrade(&mut self, name: &FabricName) {
        let Some(run) = self.upgrades.remove(name) else {
            return;
        };
        let now = self.now;
        let Some(application) = self.applications.get_mut(name) else {
            return;
        };
        if let Some(upgrade) = &mut application.upgrade {
            upgrade.finished_at = Some(now);
            upgrade.state = if run.back {
                UpgradeState::RollingBackCompleted
            } else {
                UpgradeState::RollingForwardCompleted
            };
            // A rollback ends in the version that the application still records.
            if !run.back {
                application.parameters = upgrade.to_parameters.clone();
                application.type_version = run.to;
            }
        }
        let key = (
            application.type_name.clone(),
            application.type_version.clone(),
        );
        let services = application.services.clone();
        for service in services {
            let Some(declared) = self.types.get(&key) else {
                break;
            };
            let Some(service) = self.services.get_mut(&service) else {
                continue;
            };
            if let Some((manifest, service_type)) = declared.service_type(&service.type_name) {
                service.manifest_version = manifest.version.clone();
                service.listeners = service_type.listeners.clone();
            }
        }
        self.set_upgrade_status(name, ApplicationStatus::Ready, ServiceStatus::Active);
    }

    pub(super) fn end_upgrade_wait(&mut self, name: &FabricName, token: u64) {
        // A timer of an earlier phase has another token.
        let Some(run) = self.upgrades.get(name).filter(|run| run.token == token) else {
            return;
        };
        let Some(domain) = run.domains.get(run.index).cloned() else {
            return;
        };
        match run.phase {
            UpgradePhase::Draining => self.switch_domain(name, &domain),
            // A ready replica may have crashed since.
            UpgradePhase::Settling if self.is_domain_ready(name, &domain) => {
                self.finish_domain(name, &domain)
            }
            UpgradePhase::Settling => {
                // The wait starts over after the replica is ready again.
                self.enter_phase(name, UpgradePhase::Opening);
            }
            UpgradePhase::Begin
            | UpgradePhase::Opening
            | UpgradePhase::Paused
            | UpgradePhase::Stopped => {}
        }
    }

    fn enter_phase(&mut self, name: &FabricName, phase: UpgradePhase) -> u64 {
        let token = self.next_sequence();
        if let Some(run) = self.upgrades.get_mut(name) {
            run.phase = phase;
            run.token = token;
        }
        token
    }

    fn upgrade_mut(&mut self, name: &FabricName) -> Option<&mut ApplicationUpgrade> {
        self.applications.get_mut(name)?.upgrade.as_mut()
    }

    fn set_upgrade_state(&mut self, name: &FabricName, state: UpgradeState) {
        if let Some(upgrade) = self.upgrade_mut(name) {
            upgrade.state = state;
        }
    }

    fn set_domain_state(&mut self, name: &FabricName, domain: &str, state: UpgradeDomainState) {
        let Some(upgrade) = self.upgrade_mut(name) else {
            return;
        };
        if let Some(found) = upgrade
            .domains
            .iter_mut()
            .find(|found| found.name == domain)
        {
            found.state = state;
        }
    }

    fn set_upgrade_status(
        &mut self,
        name: &FabricName,
        of_application: ApplicationStatus,
        of_services: ServiceStatus,
    ) {
        let Some(application) = self.applications.get_mut(name) else {
            return;
        };
        application.status = of_application;
        for service in &application.services {
            if let Some(service) = self.services.get_mut(service) {
                service.status = of_services;
            }
        }
    }
}

fn not_upgrading(name: &FabricName) -> FabricError {
    FabricError::new(
        ErrorCode::ApplicationNotUpgrading,
        format!("application '{name}' is not being upgraded, or not so far"),
    )
}
