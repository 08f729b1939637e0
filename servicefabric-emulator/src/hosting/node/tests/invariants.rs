//! Invariants that must hold after every step, seen from inside. The numbers are those of the specification.

use std::collections::BTreeSet;

use super::super::Node;
use super::super::state::{CodeState, FailureSource, PackageState};
use super::super::timers::TimerId;
use crate::hosting::{Phase, SlotStatus, TypeStatus};

pub(super) fn check(node: &Node) {
    check_any(node);
    let waiting = |slot: &&super::super::state::Slot| slot.status == SlotStatus::Waiting;
    let forgotten = node
        .slots
        .values()
        .filter(waiting)
        .filter(|slot| slot.poll.is_none())
        .count();
    assert!(
        !node.up || forgotten == 0,
        "{forgotten} replicas wait and are not asked for"
    );
}

/// Checks the same under settings that may disable polling.
pub(super) fn check_any(node: &Node) {
    usage(node);
    types(node);
    slots(node);
    operations(node);
    timers(node);
}

/// Checks I1, I2, I3.
fn usage(node: &Node) {
    let open = |node: &Node, wanted: &dyn Fn(&crate::hosting::PackageKey) -> bool| {
        let slots = node.slots.values();
        slots
            .filter(|slot| slot.status == SlotStatus::Open && wanted(&slot.placement.package))
            .count()
    };
    for (name, application) in &node.applications {
        let of_packages: u32 = node
            .packages_of(name)
            .iter()
            .map(|key| node.packages[key].usage)
            .sum();
        assert_eq!(application.usage, of_packages, "I1 {name}");
        assert_eq!(
            application.usage as usize,
            open(node, &|key| key.application == *name),
            "I1 {name}"
        );
        assert_eq!(
            application.unused_since.is_some(),
            application.usage == 0,
            "I1 {name}"
        );
        assert!(!application.closing || application.usage == 0, "I2 {name}");
        assert!(
            application.deactivation.is_none() || application.usage == 0,
            "I3 {name}"
        );
        assert!(
            !application.closing || application.deactivation.is_none(),
            "I3 {name}"
        );
        assert!(
            !application.closing || !node.packages_of(name).is_empty(),
            "{name} is closed and still here"
        );
    }
    for (key, package) in &node.packages {
        assert!(
            node.applications.contains_key(&key.application),
            "{key} has no application"
        );
        assert_eq!(
            package.usage as usize,
            open(node, &|of| of == key),
            "I1 {key}"
        );
        let closing = package.state == PackageState::Deactivating;
        assert!(!closing || package.usage == 0, "I2 {key}");
        assert!(
            package.deactivation.is_none() || (package.usage == 0 && !closing),
            "I3 {key}"
        );
        assert!(
            package.unused_since.is_none() || package.usage == 0,
            "I1 {key}"
        );
    }
}

/// Checks I4, I5, I6.
fn types(node: &Node) {
    for (key, package) in &node.packages {
        for service_type in &package.types {
            let about = format!("{key}:{}", service_type.name);
            let scheduled = service_type.status == TypeStatus::DisableScheduled;
            assert_eq!(service_type.disable.is_some(), scheduled, "I4 {about}");
            if service_type.status == TypeStatus::Registered {
                assert_eq!(
                    package.codes[service_type.code].state,
                    CodeState::Running,
                    "I5 {about}"
                );
            }
            let blocked = scheduled || service_type.status == TypeStatus::Disabled;
            assert_eq!(service_type.failure.is_some(), blocked, "I6 {about}");
            let fails = match service_type.failure {
                Some(FailureSource::Operation) => {
                    let operation = package.operation.as_ref();
                    operation.is_some_and(|operation| operation.failures > 0)
                }
                Some(FailureSource::CodePackage) => package.state == PackageState::Active,
                None => true,
            };
            assert!(fails, "I6 {about}: the failure is resolved");
        }
    }
}

/// Checks I10.
fn slots(node: &Node) {
    let mut indexed = 0;
    for (package, replicas) in &node.slots_of {
        assert!(!replicas.is_empty());
        indexed += replicas.len();
        assert!(
            replicas
                .iter()
                .all(|replica| node.slots[replica].placement.package == *package)
        );
    }
    assert_eq!(indexed, node.slots.len());
    for (replica, slot) in &node.slots {
        if slot.status == SlotStatus::Open {
            let package = &node.packages[&slot.placement.package];
            let service_type = package.service_type(&slot.placement.service_type).unwrap();
            assert_eq!(service_type.status, TypeStatus::Registered, "I10 {replica}");
            assert_eq!(package.state, PackageState::Active, "I10 {replica}");
            assert!(slot.poll.is_none(), "{replica} is open and asked for");
        }
    }
}

/// Checks I7, as far as it concerns one moment.
fn operations(node: &Node) {
    for (key, package) in &node.packages {
        let ongoing = package.operation.is_some();
        match package.state {
            PackageState::Starting | PackageState::Replacing => {
                assert!(ongoing, "{key} waits for nothing")
            }
            PackageState::Deactivating => assert!(!ongoing, "{key} does two things"),
            PackageState::Active => {
                assert!(!ongoing || package.is_upgrading(), "{key} starts twice")
            }
        }
        if let Some(operation) = &package.operation {
            let max = match operation.phase {
                Phase::Download => node.config.deployment_max_failure_count,
                Phase::Activation => node.config.activation_max_failure_count,
            };
            assert!(operation.failures < max.max(1), "I7 {key}");
            assert!(
                operation.attempts - operation.internal_errors <= max.max(1),
                "I7 {key}"
            );
        }
        let up = matches!(package.state, PackageState::Active);
        for code in &package.codes {
            let stopping = matches!(code.state, CodeState::Stopping | CodeState::Stopped);
            assert!(!(up && stopping), "{key} is active and does not run");
            let runs = matches!(code.state, CodeState::Running | CodeState::Stopping);
            assert_eq!(code.main.process_id.is_some(), runs, "{key}");
        }
    }
}

/// Checks I3: every timer has one owner that waits for it, and every owner's timer exists.
fn timers(node: &Node) {
    let mut owned: Vec<TimerId> = node.scan.into_iter().collect();
    owned.extend(
        node.applications
            .values()
            .filter_map(|application| application.deactivation),
    );
    owned.extend(node.slots.values().filter_map(|slot| slot.poll));
    for package in node.packages.values() {
        owned.extend(package.deactivation);
        owned.extend(package.stopping);
        owned.extend(
            package
                .operation
                .as_ref()
                .and_then(|operation| operation.timer),
        );
        for code in &package.codes {
            owned.extend(
                code.timer
                    .into_iter()
                    .chain(code.registration)
                    .chain(code.reset)
                    .chain(code.life),
            );
        }
        for service_type in &package.types {
            owned.extend(service_type.disable.into_iter().chain(service_type.timeout));
        }
    }
    let count = owned.len();
    let owned: BTreeSet<TimerId> = owned.into_iter().collect();
    assert_eq!(owned.len(), count, "two wait for one timer");
    assert_eq!(
        owned,
        node.timers.ids().collect(),
        "timers without owner, or owners without timer"
    );
    assert!(
        owned.iter().all(|id| id.due() >= node.now),
        "a timer is late"
    );
}
