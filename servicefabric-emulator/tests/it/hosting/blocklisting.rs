//! Failures, crashes, and service types that are disabled for them: the rows `C…` of the specification.

use servicefabric_emulator::hosting::{EntryPointStatus, HealthState, SlotStatus, TypeStatus};

use crate::hosting::scenario::{Row, check, moment, play};

const TYPE: &str = "scheduled cancelled disabled enabled registered timed-out";

#[test]
fn failing_operations() {
    check(&[
        Row {
            id: "C1",
            given: "set ActivationMaxFailureCount 5; activation fails 5; 0 place r; until 100",
            watch: "scheduled cancelled disabled enabled registered rejected:r give-up ServiceTypeRegistration:error",
            expect: "0 scheduled; 30 disabled; 30 ServiceTypeRegistration:error; 45 rejected:r; 100 give-up; 100 enabled",
        },
        Row {
            id: "C1 existing",
            given: "set ActivationMaxFailureCount 5; activation fails 5; 0 place r existing; until 110",
            watch: "scheduled disabled enabled rejected:r put-off:r open:r give-up download",
            expect: "0 download; 0 scheduled; 30 disabled; 45 put-off:r; 100 give-up; 100 enabled; 105 download; 105 open:r",
        },
        Row {
            id: "C2",
            given: "set ActivationMaxFailureCount 5; set ActivationRetryBackoffInterval 1; activation fails always; \
                    0 place r; until 50",
            watch: "scheduled cancelled disabled enabled give-up download",
            expect: "0 download; 0 scheduled; 10 give-up; 10 cancelled; 15 download; 15 scheduled; 25 give-up; \
                     25 cancelled; 30 download; 30 scheduled; 40 give-up; 40 cancelled; 45 download; 45 scheduled",
        },
        Row {
            id: "C2 to 100",
            given: "set ActivationMaxFailureCount 5; set ActivationRetryBackoffInterval 1; activation fails always; \
                    0 place r; until 100",
            watch: "disabled rejected:r",
            expect: "",
        },
        Row {
            id: "C3",
            given: "activation fails 3; 0 place r; until 60",
            watch: "scheduled cancelled disabled enabled registered rejected:r active open:r",
            expect: "0 scheduled; 30 disabled; 45 rejected:r; 60 enabled; 60 active; 60 registered",
        },
        Row {
            id: "C4",
            given: "activation fails 2; 0 place r; until 100",
            watch: "scheduled cancelled disabled active registered open:r",
            expect: "0 scheduled; 30 cancelled; 30 active; 30 registered; 30 open:r",
        },
        Row {
            id: "C3 with downloads",
            given: "download fails 3; 0 place r; until 60",
            watch: "scheduled cancelled disabled enabled registered rejected:r active open:r",
            expect: "0 scheduled; 30 disabled; 45 rejected:r; 60 enabled; 60 active; 60 registered",
        },
        Row {
            id: "C28",
            given: "set ActivationMaxFailureCount 3; activation fails 4; 0 place r; 29 close r; 50 place r; until 65",
            watch: "download activation give-up active Activation:error Activation:removed",
            expect: "0 download; 0 activation; 0 Activation:error; 10 activation; 30 activation; 30 give-up; \
                     30 Activation:removed; 50 download; 50 activation; 50 Activation:error; 60 activation; \
                     60 Activation:removed; 60 active",
        },
        Row {
            id: "a higher threshold waits for more failures",
            given: "set ServiceTypeDisableFailureThreshold 3; activation fails always; 0 place r; until 65",
            watch: "scheduled disabled",
            expect: "30 scheduled; 60 disabled",
        },
        Row {
            id: "an infinite grace never disables",
            given: "set ServiceTypeDisableGraceInterval infinite; activation fails always; 0 place r; until 500",
            watch: TYPE,
            expect: "",
        },
    ]);
}

#[test]
fn c1_is_asked_for_again_before_it_is_rejected() {
    let script = "set ActivationMaxFailureCount 5; activation fails 5; 0 place r";
    let replicas = play(&format!("{script}; until 15")).node.replicas();
    assert_eq!(replicas[0].status, SlotStatus::Waiting);
    assert_eq!(replicas[0].next_poll, Some(moment("30")));
    assert!(
        play(&format!("{script}; until 45"))
            .node
            .replicas()
            .is_empty()
    );
}

#[test]
fn c3_ends_registered_and_unused() {
    let played = play("activation fails 3; 0 place r; until 61");
    assert_eq!(
        played.node.service_types("fabric:/App")[0].status,
        TypeStatus::Registered
    );
    assert_eq!(played.node.packages("fabric:/App")[0].usage, 0);
}

#[test]
fn crashes() {
    let linear = "set ActivationRetryBackoffExponentiationBase linear";
    let c7 = format!("{linear}; lives 5 each; 0 place r existing; until 160").leak();
    let c8 =
        format!("{linear}; lives 5 each; registers after 3; 0 place r existing; until 110").leak();
    let c12 = format!("{linear}; lives 10 10; 0 place r; until 1000").leak();
    check(&[
        Row {
            id: "C7",
            given: c7,
            watch: "exit start scheduled cancelled disabled enabled",
            expect: "0 start; 5 exit; 5 scheduled; 15 start; 15 cancelled; 20 exit; 20 scheduled; 40 start; \
                     40 cancelled; 45 exit; 45 scheduled; 75 start; 75 cancelled; 80 exit; 80 scheduled; \
                     110 disabled; 120 start; 120 enabled; 125 exit; 125 scheduled; 155 disabled",
        },
        Row {
            id: "C7 ends with a restart at 175",
            given: format!("{linear}; lives 5 each; 0 place r existing; until 175").leak(),
            watch: "start",
            expect: "0 start; 15 start; 40 start; 75 start; 120 start; 175 start",
        },
        Row {
            id: "C8",
            given: c8,
            watch: "start registered exit scheduled cancelled disabled enabled",
            expect: "0 start; 3 registered; 5 exit; 5 scheduled; 15 start; 18 cancelled; 18 registered; 20 exit; \
                     20 scheduled; 40 start; 43 cancelled; 43 registered; 45 exit; 45 scheduled; 75 start; \
                     75 disabled; 78 enabled; 78 registered; 80 exit; 80 scheduled; 110 disabled",
        },
        Row {
            id: "C12",
            given: c12,
            watch: "exit start reset CodePackageActivation:warning CodePackageActivation:error CodePackageActivation:ok",
            expect: "0 start; 10 exit; 10 CodePackageActivation:warning; 20 start; 30 exit; 50 start; 350 reset; \
                     350 CodePackageActivation:ok",
        },
        Row {
            id: "C15",
            given: "registers never; 0 place r; until 500",
            watch: "start exit registered timed-out open:r ServiceTypeRegistration:warning ServiceTypeRegistration:error",
            expect: "0 start; 300 timed-out; 300 ServiceTypeRegistration:warning",
        },
        Row {
            id: "C16",
            given: "registers after 299; 0 place r; until 599",
            watch: "registered timed-out open:r",
            expect: "299 registered; 299 open:r",
        },
        Row {
            id: "registered at the very end of the time",
            given: "registers after 300; 0 place r; until 599",
            watch: "registered timed-out open:r",
            expect: "300 registered; 300 open:r",
        },
        Row {
            id: "C17",
            given: "set ActivationRetryBackoffExponentiationBase constant; lives 5 each; 0 place r; until 61",
            watch: "start scheduled cancelled disabled CodePackageActivation:warning CodePackageActivation:error",
            expect: "0 start; 5 CodePackageActivation:warning; 5 scheduled; 15 start; 15 cancelled; 20 scheduled; \
                     30 start; 30 cancelled; 35 CodePackageActivation:error; 35 scheduled; 45 start; 45 cancelled; \
                     50 scheduled; 60 start; 60 cancelled",
        },
        Row {
            id: "C17 later",
            given: "set ActivationRetryBackoffExponentiationBase constant; lives 5 each; 0 place r; until 5000",
            watch: "disabled rejected:r package-gone",
            expect: "",
        },
        Row {
            id: "C19",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 50; \
                    lives 5 each; 0 place r existing; 40 place s; until 50",
            watch: "exit scheduled disabled rejected:r rejected:s open:s",
            expect: "5 exit; 5 scheduled; 35 disabled; 40 rejected:s",
        },
        Row {
            id: "C21",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 100; \
                    lives 5 each; 0 place r; until 100",
            watch: "exit start package-scheduled scheduled disabled enabled package-gone",
            expect: "0 start; 5 exit; 5 package-scheduled; 5 scheduled; 35 disabled; 65 enabled; 65 package-gone",
        },
        Row {
            id: "C22",
            given: "lives 5 each; 0 place r existing; until 87",
            watch: "exit start scheduled cancelled disabled enabled",
            expect: "0 start; 5 exit; 5 scheduled; 20 start; 20 cancelled; 25 exit; 25 scheduled; 47.5 start; \
                     47.5 cancelled; 52.5 exit; 52.5 scheduled; 82.5 disabled; 86.25 start; 86.25 enabled",
        },
        Row {
            id: "persisted replicas that were open wait for their process",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 50; \
                    lives 5; 0 place r persisted; 36 place s persisted; until 60",
            watch: "open:r down:r disabled rejected:r put-off:r rejected:s open:s start",
            expect: "0 start; 0 open:r; 5 down:r; 35 disabled; 36 rejected:s; 50 put-off:r; 55 start; 55 open:r",
        },
        Row {
            id: "what is not persisted is lost",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 50; \
                    lives 5; 0 place r; until 60",
            watch: "open:r down:r rejected:r",
            expect: "0 open:r; 5 down:r; 50 rejected:r",
        },
        Row {
            id: "disabled and timed out at once: disabled first, and that stands",
            given: "registers never; lives 270; 0 place r existing; until 301",
            watch: "disabled timed-out ServiceTypeRegistration:warning ServiceTypeRegistration:error",
            expect: "300 disabled; 300 ServiceTypeRegistration:error; 300 timed-out",
        },
        Row {
            id: "after a crash the registration is awaited anew",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 400; \
                    set DeactivationGraceInterval infinite; lives 5; 0 place r existing; until 310",
            watch: "registered unregistered timed-out",
            expect: "0 registered; 5 unregistered; 305 timed-out",
        },
        Row {
            id: "C5",
            given: "set ServiceTypeDisableFailureThreshold 2; activation fails always; 0 place r; until 50",
            watch: "scheduled disabled rejected:r",
            expect: "10 scheduled; 40 disabled; 45 rejected:r",
        },
        Row {
            id: "a threshold of three crashes",
            given: "set ServiceTypeDisableFailureThreshold 3; set ActivationRetryBackoffInterval 40; \
                    set ActivationRetryBackoffExponentiationBase constant; lives 5 each; 0 place r existing; until 130",
            watch: "exit scheduled disabled",
            expect: "5 exit; 50 exit; 95 exit; 95 scheduled; 125 disabled",
        },
        Row {
            id: "C13: a crash exactly at the end of the reset interval",
            given: "set ActivationRetryBackoffExponentiationBase linear; lives 10 300; 0 place r; until 335",
            watch: "exit start reset",
            expect: "0 start; 10 exit; 20 start; 320 reset; 320 exit; 330 start",
        },
        Row {
            id: "C14: and a moment earlier",
            given: "set ActivationRetryBackoffExponentiationBase linear; lives 10 299.999; 0 place r; until 1000",
            watch: "exit start reset",
            expect: "0 start; 10 exit; 20 start; 319.999 exit; 339.999 start; 639.999 reset",
        },
        Row {
            id: "C18: a restart exactly at the end of the grace",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 30; \
                    lives 5 each; 0 place r; until 106",
            watch: "start cancelled disabled",
            expect: "0 start; 35 start; 35 cancelled; 70 start; 70 cancelled; 105 start; 105 cancelled",
        },
        Row {
            id: "C20",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationRetryBackoffInterval 50; \
                    lives 5; 0 place r existing; 40 place s existing; until 56",
            watch: "put-off:s open:s rejected:s",
            expect: "40 put-off:s; 55 open:s",
        },
        Row {
            id: "C29",
            given: "activation fails always; 0 place r; 40 restart; until 50",
            watch: "scheduled disabled enabled rejected:r",
            expect: "0 scheduled; 30 disabled; 40 rejected:r; 40 enabled",
        },
    ]);
}

#[test]
fn c12_starts_with_no_failures_again() {
    let played = play(
        "set ActivationRetryBackoffExponentiationBase linear; lives 10 10; 0 place r; until 1000",
    );
    let code = &played.node.code_packages("fabric:/App")[0];
    assert_eq!(code.main.statistics.continuous_exit_failure_count, 0);
    assert_eq!(code.main.statistics.exit_failure_count, 2);
    let health = played.node.health();
    let property = "CodePackageActivation:Code:EntryPoint";
    let report = health
        .iter()
        .find(|report| &*report.property == property)
        .unwrap();
    assert_eq!(report.state, HealthState::Ok);
    assert_eq!(
        report.description,
        "The CodePackage was activated successfully."
    );
}

#[test]
fn c15_leaves_the_process_running_and_the_replica_waiting() {
    let played = play("registers never; 0 place r; until 500");
    let code = &played.node.code_packages("fabric:/App")[0];
    assert_eq!(code.main.status, EntryPointStatus::Started);
    assert_eq!(played.node.replicas()[0].status, SlotStatus::Waiting);
}

#[test]
fn c29_leaves_an_empty_node() {
    let played = play("activation fails always; 0 place r; 40 restart; until 50");
    assert!(played.node.applications().is_empty());
    assert!(played.node.packages("fabric:/App").is_empty());
    assert!(played.node.replicas().is_empty());
    assert!(played.node.health().is_empty());
}

#[test]
fn a_persisted_replica_comes_back_after_a_restart_of_the_node() {
    check(&[Row {
        id: "persisted",
        given: "0 place r persisted; 40 restart; until 50",
        watch: "open:r down:r download rejected:r",
        expect: "0 download; 0 open:r; 40 down:r; 40 download; 40 open:r",
    }]);
}
