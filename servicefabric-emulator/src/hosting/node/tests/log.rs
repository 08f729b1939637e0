//! Invariants of the log as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Node;
use super::script::MAX_JITTER;
use crate::hosting::{
    DeactivationTarget, Event, HealthReport, HealthState, HostingConfig, Logged, PackageKey, Phase,
    Span, Timestamp,
};

/// A reader that follows a log, event by event.
#[derive(Default)]
pub(super) struct Reader {
    last: Timestamp,
    closing: BTreeSet<PackageKey>,
    scheduled: BTreeSet<DeactivationTarget>,
    health: BTreeMap<String, HealthState>,
}

impl Reader {
    pub(super) fn read(&mut self, config: &HostingConfig, events: &[Logged]) {
        for logged in events {
            assert!(logged.at >= self.last, "time went back");
            self.last = logged.at;
            self.event(config, logged);
        }
    }

    fn event(&mut self, config: &HostingConfig, logged: &Logged) {
        match &logged.event {
            Event::NodeStopped => {
                self.closing.clear();
                self.scheduled.clear();
            }
            Event::PackageActivated { package, .. } => {
                assert!(!self.closing.contains(package), "I2 {package}")
            }
            Event::ReplicaOpened { process, .. } => {
                assert!(
                    !self.closing.contains(&process.package),
                    "I2, I10 {process}"
                );
            }
            Event::DeactivationScheduled { target, due } => {
                assert!(self.scheduled.insert(target.clone()), "I3 {target}");
                assert!(*due >= logged.at);
            }
            Event::DeactivationCancelled { target } => {
                assert!(self.scheduled.remove(target), "I3 {target}")
            }
            Event::DeactivationStarted { target } => {
                self.scheduled.remove(target);
                if let DeactivationTarget::Package(package) = target {
                    assert!(self.closing.insert(package.clone()), "I2 {package}");
                }
            }
            Event::Deactivated {
                target: DeactivationTarget::Package(package),
            } => {
                assert!(
                    self.closing.remove(package),
                    "{package} went without notice"
                );
            }
            Event::AttemptFailed {
                package,
                phase,
                failures,
                retry_at: Some(retry_at),
                ..
            } => {
                let most = Span::from_secs(MAX_JITTER);
                let (interval, cap, jitter) = match phase {
                    Phase::Download => (
                        config.deployment_retry_backoff_interval,
                        config.deployment_max_retry_interval,
                        most.min(config.deployment_failed_retry_interval_range),
                    ),
                    Phase::Activation => (
                        config.activation_retry_backoff_interval,
                        config.activation_max_retry_interval,
                        most,
                    ),
                };
                // Without jitter the waits grow with the failures. With it they are a little longer, up to
                // the cap.
                let least = interval.saturating_mul(u64::from((*failures).max(1)));
                let longest = least.saturating_add(jitter).min(cap);
                let wait = retry_at.since(logged.at);
                assert!(
                    wait >= least.min(cap) && wait <= longest,
                    "I7 {package} {phase:?}: {wait} after failure {failures}, up to {cap}"
                );
            }
            Event::ProcessBackingOff { wait, .. } => {
                assert!(*wait <= config.activation_max_retry_interval, "I8")
            }
            Event::Health {
                entity,
                property,
                report,
            } => {
                let key = format!("{entity} {property}");
                match report {
                    HealthReport::State { state, .. } => {
                        let before = self.health.insert(key.clone(), *state);
                        let once = ["CodePackageActivation:", "Download:", "Activation:"];
                        let changes = !once.iter().any(|start| property.starts_with(start))
                            || before != Some(*state);
                        assert!(changes, "I12 {key} {state}");
                    }
                    HealthReport::Removed => assert!(
                        self.health.remove(&key).is_some(),
                        "I12 {key} was never reported"
                    ),
                }
            }
            _ => {}
        }
    }

    /// Checks that the log agrees with the state of the node.
    pub(super) fn agrees(&self, node: &Node) {
        let standing: BTreeMap<String, HealthState> = node
            .health()
            .iter()
            .map(|report| {
                (
                    format!("{} {}", report.entity, report.property),
                    report.state,
                )
            })
            .collect();
        assert_eq!(standing, self.health, "I12");
        let mut scheduled = BTreeSet::new();
        for application in node.applications() {
            scheduled.extend(
                application
                    .deactivation
                    .map(|_| DeactivationTarget::Application(application.name.clone())),
            );
            for package in node.packages(&application.name) {
                scheduled.extend(
                    package
                        .deactivation
                        .map(|_| DeactivationTarget::Package(package.key)),
                );
            }
        }
        assert_eq!(scheduled, self.scheduled, "I3");
    }
}
