//! Random scripts.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::super::Node;
use crate::hosting::{
    Attempts, BackoffMode, Behaviour, CodePackageDescription, Failures, HostingConfig, Life,
    PackageDescription, PackageKey, Placement, ProcessBehaviour, Profile, Registration, ReplicaKey,
    ReplicaKind, Span, Timestamp,
};

/// An action of a caller.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Pass(u64),
    Place {
        replica: i64,
        package: usize,
        service_type: usize,
        existing: bool,
        persisted: bool,
    },
    Close(i64),
    Activate(usize),
    Exit {
        package: usize,
        code: usize,
        exit_code: i32,
    },
    PackageScript(usize, Box<Behaviour>),
    Declare(u8),
    Upgrade(usize),
    Stop,
    Start,
    Restart,
}

const CODES: [&str; 3] = ["Code", "Other", "Agent"];
const TYPES: [&str; 3] = ["A", "B", "C"];

/// Two applications; the first has a package with a shared and two exclusive instances.
pub(super) fn packages() -> [PackageKey; 5] {
    [
        PackageKey::shared("fabric:/App", "P"),
        PackageKey::exclusive("fabric:/App", "P", "1"),
        PackageKey::exclusive("fabric:/App", "P", "2"),
        PackageKey::shared("fabric:/App", "Q"),
        PackageKey::shared("fabric:/Other", "P"),
    ]
}

fn description(application: &str, manifest: &str, version: u8) -> PackageDescription {
    let version = format!("{version}.0");
    let mut agent = CodePackageDescription::helper("Agent", &version);
    agent.run_to_completion = manifest == "Q";
    let mut other = CodePackageDescription::hosting("Other", &version, &["C"]);
    other.setup = (manifest == "Q").then(|| "setup.exe".into());
    other.guest = true;
    PackageDescription::new(application, manifest, &version, &["A", "B"])
        .with(other)
        .with(agent)
}

pub(super) fn declare(node: &mut Node, version: u8) {
    for (application, manifest) in [
        ("fabric:/App", "P"),
        ("fabric:/App", "Q"),
        ("fabric:/Other", "P"),
    ] {
        node.declare(description(application, manifest, version));
    }
}

fn span(secs: impl Strategy<Value = u64>) -> impl Strategy<Value = Span> {
    secs.prop_map(Span::from_secs)
}

fn failures() -> impl Strategy<Value = Failures> {
    prop_oneof![
        6 => Just(Failures::First(0)),
        4 => (1_u32..6).prop_map(Failures::First),
        1 => Just(Failures::Always),
    ]
}

/// The maximum jitter of a wait.
pub(super) const MAX_JITTER: u64 = 8;

fn jitter() -> impl Strategy<Value = Vec<Span>> {
    prop_oneof![2 => Just(Vec::new()), 1 => vec(span(0..=MAX_JITTER), 1..6)]
}

fn attempts() -> impl Strategy<Value = Attempts> {
    (
        span(prop_oneof![3 => Just(0), 1 => 0_u64..40]),
        failures(),
        prop_oneof![4 => Just(0), 1 => 0_u32..4],
        jitter(),
    )
        .prop_map(|(time, failures, internal_errors, jitter)| Attempts {
            time,
            failures,
            internal_errors,
            jitter,
        })
}

fn process() -> impl Strategy<Value = ProcessBehaviour> {
    let registration = prop_oneof![
        4 => Just(Registration::After(Span::ZERO)),
        2 => span(0_u64..30).prop_map(Registration::After),
        1 => Just(Registration::Never),
    ];
    let life = (span(1_u64..60), prop_oneof![2 => Just(1), 1 => Just(0)]);
    let lives = vec(
        life.prop_map(|(lasts, exit_code)| Life { lasts, exit_code }),
        0..4,
    );
    (
        span(0_u64..5),
        vec(0_i32..2, 0..3),
        failures(),
        registration,
        lives,
        any::<bool>(),
        jitter(),
    )
        .prop_map(
            |(
                setup_time,
                setup_exit_codes,
                start_failures,
                registration,
                lives,
                repeat,
                restart_jitter,
            )| {
                ProcessBehaviour {
                    setup_time,
                    setup_exit_codes,
                    start_failures,
                    registration,
                    lives,
                    repeat,
                    restart_jitter,
                }
            },
        )
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    (
        attempts(),
        attempts(),
        attempts(),
        process(),
        process(),
        process(),
    )
        .prop_map(|(download, activation, deactivation, code, other, agent)| {
            Behaviour {
                download,
                activation,
                deactivation,
                ..Behaviour::default()
            }
            .with_process("Code", code)
            .with_process("Other", other)
            .with_process("Agent", agent)
        })
}

fn action() -> impl Strategy<Value = Action> {
    let package = 0..packages().len();
    let replica = 0_i64..8;
    prop_oneof![
        8 => (0_u64..200_000).prop_map(Action::Pass),
        // Many events are at whole seconds, so that several are due at once.
        8 => (0_u64..60).prop_map(|secs| Action::Pass(secs * 1000)),
        10 => (replica.clone(), package.clone(), 0..TYPES.len(), any::<bool>(), any::<bool>()).prop_map(
            |(replica, package, service_type, existing, persisted)| Action::Place {
                replica, package, service_type, existing, persisted,
            }
        ),
        6 => replica.prop_map(Action::Close),
        2 => package.clone().prop_map(Action::Activate),
        5 => (package.clone(), 0..CODES.len(), 0_i32..3)
            .prop_map(|(package, code, exit_code)| Action::Exit { package, code, exit_code }),
        3 => (package.clone(), behaviour()).prop_map(|(package, behaviour)| Action::PackageScript(package, Box::new(behaviour))),
        2 => (1_u8..4).prop_map(Action::Declare),
        3 => package.prop_map(Action::Upgrade),
        1 => Just(Action::Stop),
        2 => Just(Action::Start),
        1 => Just(Action::Restart),
    ]
}

pub(super) fn actions() -> impl Strategy<Value = Vec<Action>> {
    vec(action(), 1..40)
}

/// Generates settings that are small enough for much to happen. All intervals are finite.
pub(super) fn config() -> impl Strategy<Value = HostingConfig> {
    let mode = prop_oneof![
        Just(BackoffMode::Constant),
        Just(BackoffMode::Linear),
        (0.0..4.0).prop_map(BackoffMode::Exponential),
    ];
    (
        (any::<bool>(), mode, 1_u32..6, 1_u32..4),
        (1_u64..30, 1_u64..60, 0_u64..60, 0_u64..90, 0_u64..5),
        (1_u64..120, 0_u64..200, 0_u64..100, 0_u64..20),
        of(0_u32..20),
        (1_u64..30, 1_u64..60, 1_u32..6, 0_u64..10),
    )
        .prop_map(
            |((runtime, mode, max, threshold), intervals, others, limit, deployment)| {
                let mut config = HostingConfig::new(if runtime {
                    Profile::Runtime64
                } else {
                    Profile::Documented
                });
                let (interval, cap, disable, grace, exclusive) = intervals;
                let (scan, registration, reset, poll) = others;
                config.activation_retry_backoff = mode;
                config.activation_max_failure_count = max;
                config.service_type_disable_failure_threshold = threshold;
                config.activation_retry_backoff_interval = Span::from_secs(interval);
                config.activation_max_retry_interval = Span::from_secs(cap);
                let (interval, cap, max, range) = deployment;
                config.deployment_retry_backoff_interval = Span::from_secs(interval);
                config.deployment_max_retry_interval = Span::from_secs(cap);
                config.deployment_max_failure_count = max;
                config.deployment_failed_retry_interval_range = Span::from_secs(range);
                config.service_type_disable_grace_interval = Span::from_secs(disable);
                config.deactivation_grace_interval = Span::from_secs(grace);
                config.exclusive_mode_deactivation_grace_interval = Span::from_secs(exclusive);
                config.deactivation_scan_interval = Span::from_secs(scan);
                config.service_type_registration_timeout = Span::from_secs(registration);
                config.code_package_continuous_exit_failure_reset_interval = Span::from_secs(reset);
                config.rap_message_retry_interval = Span::from_secs(poll);
                config.replica_open_failure_max_retry_threshold = limit;
                config
            },
        )
}

/// Performs an action. Rejections of impossible instructions are expected.
pub(super) fn perform(node: &mut Node, action: &Action, mut after_step: impl FnMut(&mut Node)) {
    let packages = packages();
    match action {
        Action::Pass(millis) => {
            let to = Timestamp::from_millis(node.now().as_millis() + millis);
            let mut steps = 0;
            while node.step(to) {
                after_step(node);
                steps += 1;
                assert!(steps < 20_000, "the clock stands still at {}", node.now());
            }
        }
        Action::Place {
            replica,
            package,
            service_type,
            existing,
            persisted,
        } => {
            let replica = ReplicaKey::new("partition", *replica);
            let mut placement =
                Placement::new(replica, packages[*package].clone(), TYPES[*service_type]);
            placement.persisted = *persisted;
            if *existing {
                placement.kind = ReplicaKind::Existing;
            }
            let _ = node.place(placement);
        }
        Action::Close(replica) => {
            let _ = node.close(&ReplicaKey::new("partition", *replica));
        }
        Action::Activate(package) => {
            let _ = node.activate(&packages[*package]);
        }
        Action::Exit {
            package,
            code,
            exit_code,
        } => {
            let _ = node.exit(&packages[*package].process(CODES[*code]), *exit_code);
        }
        Action::PackageScript(package, behaviour) => {
            node.script(&packages[*package], (**behaviour).clone())
        }
        Action::Declare(version) => declare(node, *version),
        Action::Upgrade(package) => {
            let _ = node.upgrade(&packages[*package]);
        }
        Action::Stop => node.stop(),
        Action::Start => node.start(),
        Action::Restart => node.restart(),
    }
    after_step(node);
}
