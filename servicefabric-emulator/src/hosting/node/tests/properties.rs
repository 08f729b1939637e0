//! The properties themselves.

use proptest::prelude::*;

use super::super::Node;
use super::super::state::PackageState;
use super::invariants;
use super::log::Reader;
use super::script::{Action, actions, config, declare, packages, perform};
use crate::hosting::backoff::{restart_wait, retry_wait};
use crate::hosting::{
    BackoffMode, Behaviour, DeactivationTarget, Event, HostingConfig, PackageKey, Profile,
    ReplicaKey, Span, Timestamp,
};

fn node(config: HostingConfig) -> Node {
    let mut node = Node::new("N1", config);
    declare(&mut node, 1);
    node
}

/// Plays a script and returns the log as text.
fn play(config: &HostingConfig, actions: &[Action]) -> String {
    let mut node = node(config.clone());
    let mut log = String::new();
    for action in actions {
        perform(&mut node, action, |_| {});
        for logged in node.take_events() {
            log.push_str(&format!(
                "{logged}\n{}\n",
                serde_json::to_string(&logged).unwrap()
            ));
        }
    }
    log
}

proptest! {
    /// I1 to I8, I10, I12, after every step of any script; and I13: in the end the node becomes idle.
    #[test]
    fn invariants_hold_after_every_step(config in config(), actions in actions()) {
        let mut node = node(config.clone());
        let mut reader = Reader::default();
        let mut look = |node: &mut Node| {
            invariants::check(node);
            reader.read(&config, &node.take_events());
            reader.agrees(node);
        };
        for action in &actions {
            perform(&mut node, action, &mut look);
        }
        node.start();
        for package in packages() {
            node.script(&package, Behaviour::default());
        }
        for replica in 0..8 {
            let _ = node.close(&ReplicaKey::new("partition", replica));
        }
        look(&mut node);
        let scan = config.deactivation_scan_interval;
        let grace = config.deactivation_grace_interval.max(config.exclusive_mode_deactivation_grace_interval);
        // A package that is being removed may have been scripted to fail, or to take time, and an upgrade is
        // not stopped.
        let busy = node
            .packages
            .values()
            .any(|package| package.state == PackageState::Deactivating || package.is_upgrading());
        let patience = if busy {
            config.activation_timeout.saturating_add(config.deactivation_max_retry_interval)
        } else {
            Span::ZERO
        };
        let idle = scan.saturating_mul(2).saturating_add(grace.saturating_mul(2)).saturating_add(patience);
        let end = node.now().after(idle).unwrap();
        while node.step(end) {
            look(&mut node);
        }
        prop_assert!(node.applications.is_empty(), "I13 {:?}", node.applications);
        prop_assert!(node.packages.is_empty(), "I13");
        prop_assert!(node.health.is_empty(), "I13");
        prop_assert_eq!(node.next_due(), None, "I13");
    }

    /// I11.
    #[test]
    fn the_same_script_gives_the_same_log(config in config(), actions in actions()) {
        prop_assert_eq!(play(&config, &actions), play(&config, &actions));
    }

    /// The split of time into steps makes no difference.
    #[test]
    fn time_may_pass_in_any_portions(config in config(), actions in actions()) {
        let in_pieces: Vec<Action> = actions
            .iter()
            .flat_map(|action| match action {
                Action::Pass(millis) => vec![Action::Pass(millis / 3), Action::Pass(millis - millis / 3)],
                other => vec![other.clone()],
            })
            .collect();
        prop_assert_eq!(play(&config, &actions), play(&config, &in_pieces));
    }

    /// I8.
    #[test]
    fn waits_grow_up_to_the_cap(
        base in prop_oneof![Just(0.0), Just(1.0), 0.0..10.0_f64, any::<f64>()],
        interval in any::<u64>(),
        cap in any::<u64>(),
        runtime in any::<bool>(),
        failures in 0_u32..200,
        jitter in any::<u64>(),
    ) {
        let mut config = HostingConfig::new(if runtime { Profile::Runtime64 } else { Profile::Documented });
        if let Some(mode) = BackoffMode::from_raw(base) {
            config.activation_retry_backoff = mode;
        }
        config.activation_retry_backoff_interval = Span::from_millis(interval);
        config.activation_max_retry_interval = Span::from_millis(cap);
        let wait = |failures| restart_wait(&config, failures, Span::ZERO);
        prop_assert!(wait(failures) <= wait(failures + 1));
        prop_assert!(wait(failures) <= Span::from_millis(cap));
        let longer = restart_wait(&config, failures, Span::from_millis(jitter));
        prop_assert!(longer >= wait(failures) && longer <= Span::from_millis(cap));
        let (interval, cap) = (Span::from_millis(interval), Span::from_millis(cap));
        prop_assert!(retry_wait(interval, cap, failures) <= retry_wait(interval, cap, failures + 1));
        prop_assert!(retry_wait(interval, cap, failures) <= cap);
    }

    /// I9, both ways: with its application, and alone in an application that is used.
    #[test]
    fn a_package_that_was_never_used_goes_in_its_time(
        scan in 1_u64..2_000_000,
        grace in 0_u64..2_000_000,
        start in 0_u64..5_000_000,
        exclusive in any::<bool>(),
        in_used_application in any::<bool>(),
    ) {
        let config = HostingConfig {
            deactivation_scan_interval: Span::from_millis(scan),
            deactivation_grace_interval: Span::from_millis(grace),
            exclusive_mode_deactivation_grace_interval: Span::from_millis(grace),
            ..HostingConfig::default()
        };
        let mut node = node(config);
        if in_used_application {
            let used = PackageKey::shared("fabric:/App", "Q");
            node.place(crate::hosting::Placement::new(ReplicaKey::new("p", 1), used, "A")).unwrap();
        }
        node.advance(Timestamp::from_millis(start));
        let package = PackageKey::exclusive("fabric:/App", "P", if exclusive { "1" } else { "" });
        node.activate(&package).unwrap();
        node.take_events();
        node.advance(Timestamp::from_millis(start + 2 * scan + grace + 1));
        let target = DeactivationTarget::Package(package);
        let gone = node
            .take_events()
            .into_iter()
            .find(|logged| logged.event == Event::Deactivated { target: target.clone() });
        let age = gone.unwrap().at.as_millis() - start;
        prop_assert!((scan + grace..2 * scan + grace).contains(&age), "I9 {}", age);
    }
}

/// However extreme the settings, nothing overflows and every step comes to an end.
#[test]
fn extreme_settings_do_no_harm() {
    for extreme in ["0", "0.001", "infinite", "18446744073709551", "1e300"] {
        for count in ["0", "1", "4294967295"] {
            let mut config = HostingConfig::default();
            for name in HostingConfig::setting_names() {
                let _ = config.set(name, &extreme.into());
                let _ = config.set(name, &count.into());
            }
            // Settings that accept both are lengths of time.
            for name in HostingConfig::setting_names().filter(|name| !name.contains("Count")) {
                let _ = config.set(name, &extreme.into());
            }
            let mut node = node(config);
            node.script(
                &packages()[0],
                Behaviour::default().with_activation(crate::hosting::Attempts::always_failing()),
            );
            for (replica, package) in (0_i64..).zip(packages()) {
                let placement = crate::hosting::Placement::new(
                    ReplicaKey::new("partition", replica),
                    package,
                    "A",
                );
                node.place(placement).unwrap();
            }
            for _ in 0..200 {
                node.step(Timestamp::from_millis(u64::MAX));
                invariants::check_any(&node);
            }
            for package in packages() {
                let _ = node.exit(&package.process("Code"), 1);
            }
            for _ in 0..200 {
                node.step(Timestamp::from_millis(u64::MAX));
                invariants::check_any(&node);
            }
        }
    }
}
