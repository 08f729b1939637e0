//! Code packages: setup entry points, regular exits, guests.

use servicefabric_emulator::hosting::{
    ABORTED_EXIT_CODE, Attempts, Behaviour, CodePackageDescription, DEACTIVATED_EXIT_CODE,
    DeployedCodePackage, DeploymentStatus, EntryPointStatus, Event, Failures, HostingConfig, Life,
    Logged, Node, PackageDescription, PackageKey, Placement, ProcessBehaviour, SettingValue, Span,
    Timestamp, TypeStatus,
};

use crate::hosting::scenario::{Row, check, moment, outcome, replica, seconds};

const APP: &str = "fabric:/App";

fn package() -> PackageKey {
    PackageKey::shared(APP, "P")
}

fn node(host: CodePackageDescription, behaviour: Behaviour) -> Node {
    let mut description = PackageDescription::new(APP, "P", "1.0", &[]);
    description.code_packages = vec![host];
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(description);
    node.script(&package(), behaviour);
    node
}

fn host() -> CodePackageDescription {
    CodePackageDescription::hosting("Code", "1.0", &["T"])
}

fn place(node: &mut Node) {
    node.place(Placement::new(replica("r"), package(), "T"))
        .unwrap();
}

fn code(node: &Node) -> DeployedCodePackage {
    node.code_packages(APP).remove(0)
}

fn happened(events: &[Logged], watch: &[&str]) -> Vec<String> {
    let watched = outcome(events)
        .into_iter()
        .filter(|(_, word)| watch.contains(&word.as_str()));
    watched
        .map(|(at, word)| format!("{} {word}", seconds(at)))
        .collect()
}

#[test]
fn setup_runs_to_its_end_before_the_main_entry_point_starts() {
    let mut host = host();
    host.setup = Some("setup.exe".into());
    let process = ProcessBehaviour {
        setup_time: Span::from_secs(7),
        setup_exit_codes: vec![5, 5],
        ..ProcessBehaviour::default()
    };
    let mut node = node(host, Behaviour::default().with_process("Code", process));
    place(&mut node);
    assert_eq!(code(&node).setup.unwrap().status, EntryPointStatus::Started);
    assert_eq!(code(&node).status, DeploymentStatus::Activating);
    node.advance(Timestamp::from_secs(7));
    let setup = code(&node).setup.unwrap();
    assert_eq!(setup.status, EntryPointStatus::Pending);
    assert_eq!(setup.next_activation, Some(moment("22")));
    assert_eq!(setup.statistics.last_exit_code, 5);
    assert_eq!(setup.statistics.continuous_exit_failure_count, 1);
    node.advance(Timestamp::from_secs(100));
    // It runs from 22 to 29, waits 22.5 s, and runs from 51.5 to 58.5. The new replica does not live to see
    // that.
    let words = [
        "start",
        "scheduled",
        "disabled",
        "enabled",
        "registered",
        "rejected:r",
        "CodePackageActivation:warning",
        "CodePackageActivation:ok",
    ];
    assert_eq!(
        happened(&node.take_events(), &words),
        [
            "7 CodePackageActivation:warning",
            "7 scheduled",
            "37 disabled",
            "45 rejected:r",
            "58.5 CodePackageActivation:ok",
            "58.5 start",
            "58.5 enabled",
            "58.5 registered",
        ]
    );
    let setup = code(&node).setup.unwrap();
    assert_eq!(setup.status, EntryPointStatus::Stopped);
    assert_eq!(setup.statistics.continuous_exit_failure_count, 0);
    assert_eq!(setup.statistics.activation_count, 3);
    assert!(
        node.health()
            .iter()
            .any(|report| &*report.property == "CodePackageActivation:Code:SetupEntryPoint")
    );
}

#[test]
fn an_exit_with_code_zero_is_followed_by_a_start_at_once() {
    check(&[
        Row {
            id: "zero",
            given: "0 place r; 100 exit 0; until 300",
            watch: "start exit unregistered registered open:r down:r scheduled disabled CodePackageActivation:warning",
            expect: "0 start; 0 registered; 0 open:r; 100 exit; 100 unregistered; 100 down:r; 100 start; \
                     100 registered; 100 open:r",
        },
        Row {
            id: "stopped by hosting",
            given: "0 place r; 100 exit 7147; until 300",
            watch: "start exit CodePackageActivation:warning",
            expect: "0 start; 100 exit; 100 start",
        },
        Row {
            id: "zero makes up for earlier crashes",
            given: "0 place r; 100 exit 1; 120 exit 0; 130 exit 1; until 146",
            watch: "start exit CodePackageActivation:warning CodePackageActivation:error CodePackageActivation:ok",
            expect: "0 start; 100 exit; 100 CodePackageActivation:warning; 115 start; 120 exit; \
                     120 CodePackageActivation:ok; 120 start; 130 exit; 130 CodePackageActivation:warning; 145 start",
        },
    ]);
}

#[test]
fn what_runs_to_completion_is_not_started_again() {
    let mut job = CodePackageDescription::helper("Job", "1.0");
    job.run_to_completion = true;
    let lives = vec![
        Life::crashing_after(Span::from_secs(5)),
        Life {
            lasts: Span::from_secs(5),
            exit_code: 0,
        },
    ];
    let process = ProcessBehaviour {
        lives,
        ..ProcessBehaviour::default()
    };
    let mut node = node(job, Behaviour::default().with_process("Job", process));
    node.activate(&package()).unwrap();
    node.advance(Timestamp::from_secs(100));
    // A crash is no completion: the process restarts, and then completes.
    assert_eq!(
        happened(&node.take_events(), &["start", "exit"]),
        ["0 start", "5 exit", "20 start", "25 exit"]
    );
    assert_eq!(code(&node).status, DeploymentStatus::RanToCompletion);
    assert_eq!(code(&node).main.status, EntryPointStatus::Stopped);
}

#[test]
fn starts_that_fail_count_like_crashes() {
    let process = ProcessBehaviour {
        start_failures: Failures::First(2),
        ..ProcessBehaviour::default()
    };
    let mut node = node(host(), Behaviour::default().with_process("Code", process));
    place(&mut node);
    assert_eq!(code(&node).main.status, EntryPointStatus::Pending);
    assert_eq!(code(&node).main.next_activation, Some(moment("15")));
    node.advance(Timestamp::from_secs(37));
    let words = [
        "start",
        "scheduled",
        "disabled",
        "enabled",
        "open:r",
        "rejected:r",
    ];
    assert_eq!(
        happened(&node.take_events(), &words),
        ["0 scheduled", "30 disabled"],
        "the second failure does not move the end of the grace"
    );
    node.advance(Timestamp::from_secs(38));
    assert_eq!(node.service_types(APP)[0].status, TypeStatus::Registered);
    let statistics = code(&node).main.statistics;
    assert_eq!(statistics.activation_count, 3);
    assert_eq!(statistics.activation_failure_count, 2);
    assert_eq!(statistics.last_successful_activation, Some(moment("37.5")));
}

#[test]
fn a_guest_that_fails_again_and_again_loses_its_replicas() {
    let mut host = host();
    host.guest = true;
    let process = ProcessBehaviour {
        lives: vec![Life::crashing_after(Span::from_secs(1))],
        repeat: true,
        ..ProcessBehaviour::default()
    };
    let mut node = node(host, Behaviour::default().with_process("Code", process));
    place(&mut node);
    let mut exits = 0;
    while !node.replicas().is_empty() {
        assert!(
            node.step(Timestamp::from_secs(100_000)),
            "the replica was never given up"
        );
        exits = node
            .code_packages(APP)
            .first()
            .map_or(exits, |code| code.main.statistics.exit_failure_count);
    }
    let constant = "ActivationRetryBackoffExponentiationBase";
    assert!(
        exits < 11,
        "the type is disabled, and the new replica rejected, before"
    );

    let mut config = HostingConfig::default();
    config.set(constant, &SettingValue::Integer(1)).unwrap();
    let mut patient = Node::new("N1", config);
    let mut description = PackageDescription::new(APP, "P", "1.0", &["T"]);
    description.code_packages[0].guest = true;
    patient.declare(description);
    let process = ProcessBehaviour {
        lives: vec![Life::crashing_after(Span::from_secs(1))],
        repeat: true,
        ..ProcessBehaviour::default()
    };
    patient.script(
        &package(),
        Behaviour::default().with_process("Code", process),
    );
    place(&mut patient);
    patient.advance(Timestamp::from_secs(1000));
    // Eleven lives of a second and ten waits of ten seconds: 111 s.
    assert_eq!(
        happened(&patient.take_events(), &["rejected:r"]),
        ["111 rejected:r"]
    );
}

#[test]
fn stopped_processes_say_how_they_ended() {
    for (needs, code) in [(20, DEACTIVATED_EXIT_CODE), (181, ABORTED_EXIT_CODE)] {
        let stopping = Attempts::taking(Span::from_secs(needs));
        let mut node = node(host(), Behaviour::default().with_deactivation(stopping));
        place(&mut node);
        node.close(&replica("r")).unwrap();
        node.advance(Timestamp::from_secs(1000));
        let exits: Vec<i32> = node
            .take_events()
            .iter()
            .filter_map(|logged| match logged.event {
                Event::ProcessExited { exit_code, .. } => Some(exit_code),
                _ => None,
            })
            .collect();
        assert_eq!(exits, [code]);
    }
}

#[test]
fn internal_errors_do_not_count_as_failures() {
    let script = |download: Attempts| Behaviour::default().with_download(download);
    let locked = Attempts {
        internal_errors: 3,
        failures: Failures::First(1),
        ..Attempts::default()
    };
    let mut lenient = node(host(), script(locked.clone()));
    place(&mut lenient);
    lenient.advance(Timestamp::from_secs(39));
    let words = ["download", "scheduled", "Download:error", "active"];
    assert_eq!(
        happened(&lenient.take_events(), &words),
        [
            "0 download",
            "10 download",
            "20 download",
            "30 download",
            "30 Download:error",
            "30 scheduled"
        ]
    );
    lenient.advance(Timestamp::from_secs(40));
    assert_eq!(
        happened(&lenient.take_events(), &words),
        ["40 download", "40 active"]
    );

    let mut config = HostingConfig::default();
    config
        .set("RetryOnInternalError", &SettingValue::Bool(false))
        .unwrap();
    let mut strict = Node::new("N1", config);
    strict.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    strict.script(&package(), script(locked));
    place(&mut strict);
    assert_eq!(
        happened(&strict.take_events(), &words),
        ["0 download", "0 Download:error", "0 scheduled"]
    );
}

#[test]
fn an_activation_that_takes_too_long_has_failed() {
    let slow = Attempts::taking(Span::from_secs(200));
    let mut node = node(host(), Behaviour::default().with_activation(slow));
    node.activate(&package()).unwrap();
    node.advance(Timestamp::from_secs(200));
    assert_eq!(
        happened(&node.take_events(), &["activation", "active", "scheduled"]),
        ["0 activation", "180 scheduled", "190 activation"]
    );
}

#[test]
fn jitter_is_what_the_script_says() {
    let jittery = Attempts {
        jitter: vec![Span::from_secs(2), Span::from_secs(60)],
        ..Attempts::failing(2)
    };
    let process = ProcessBehaviour {
        lives: vec![Life::crashing_after(Span::from_secs(10))],
        restart_jitter: vec![Span::from_secs(4)],
        ..ProcessBehaviour::default()
    };
    let mut node = node(
        host(),
        Behaviour::default()
            .with_download(jittery)
            .with_process("Code", process),
    );
    node.activate(&package()).unwrap();
    node.advance(Timestamp::from_secs(100));
    // The second is limited to the 5 s of DeploymentFailedRetryIntervalRange.
    assert_eq!(
        happened(&node.take_events(), &["download", "start"]),
        [
            "2 download",
            "17 download",
            "37 download",
            "37 start",
            "66 start"
        ]
    );
}
