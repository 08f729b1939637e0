//! Differences between the published source of the runtime and its documentation.

use servicefabric_emulator::timeline::Script;

use crate::hosting::scenario::{Row, check};

#[test]
fn runtime64() {
    check(&[
        Row {
            id: "C26",
            given: "set Profile runtime64; set ActivationRetryBackoffInterval 1; set ActivationMaxFailureCount 5; \
                    activation fails always; 0 place r; until 300",
            watch: "scheduled cancelled disabled enabled rejected:r",
            expect: "",
        },
        Row {
            id: "the failures are counted when a replica is asked for",
            given: "set Profile runtime64; activation fails always; 0 place r; until 60",
            watch: "activation scheduled disabled rejected:r",
            expect: "0 activation; 10 activation; 15 scheduled; 30 activation; 45 disabled; 60 activation; 60 rejected:r",
        },
        Row {
            id: "and must be more than the threshold",
            given: "set Profile runtime64; set ServiceTypeDisableFailureThreshold 2; activation fails always; \
                    0 place r; until 60",
            watch: "activation scheduled disabled",
            expect: "0 activation; 10 activation; 30 activation; 30 scheduled; 60 activation; 60 disabled",
        },
        Row {
            id: "crashes: one does not suffice",
            given: "set Profile runtime64; lives 5 5; set ActivationRetryBackoffInterval 40; \
                    set DeactivationGraceInterval infinite; 0 place r existing; until 200",
            watch: "start exit scheduled cancelled disabled enabled",
            expect: "0 start; 5 exit; 45 start; 50 exit; 65 scheduled; 95 disabled; 130 start; 130 enabled",
        },
        Row {
            id: "crashes with exponential waits",
            given: "set Profile runtime64; lives 5 each; 0 place r existing; until 131",
            watch: "start exit scheduled cancelled disabled enabled",
            expect: "0 start; 5 exit; 15 start; 20 exit; 35 scheduled; 40 start; 40 cancelled; 45 exit; \
                     60 scheduled; 75 start; 75 cancelled; 80 exit; 95 scheduled; 125 disabled; 130 start; 130 enabled",
        },
        Row {
            id: "a late registration is an error",
            given: "set Profile runtime64; registers never; 0 place r; until 500",
            watch: "timed-out ServiceTypeRegistration:warning ServiceTypeRegistration:error",
            expect: "300 timed-out; 300 ServiceTypeRegistration:error",
        },
        Row {
            id: "a new replica is given up after forty retries",
            given: "set Profile runtime64; registers never; 0 place r; 0 place s existing; until 1000",
            watch: "rejected:r rejected:s",
            expect: "600 rejected:r",
        },
    ]);
}

#[test]
fn failures_of_the_setup_count_for_the_runtime() {
    let script = r#"
        until = 70
        config.Profile = "runtime64"
        event = [{ at = 0, place = "r" }]
        [[package]]
        name = "P"
        code = [{ name = "Code", types = ["T"], setup = "setup.exe" }]
        process.Code.setup_exit_codes = [1, 1, 1, 1, 1, 1]
    "#;
    let log = Script::read(script).unwrap().run().to_string();
    for line in [
        "       15s  type fabric:/App/P:T will be disabled at 45s",
        "       45s  type fabric:/App/P:T disabled",
    ] {
        assert!(log.contains(line), "{line} is not in\n{log}");
    }
}
