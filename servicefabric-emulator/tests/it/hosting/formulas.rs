//! The growth of waits: the rows `A…` of the specification.

use servicefabric_emulator::hosting::{BackoffMode, Event, Logged, Span};

use crate::hosting::scenario::{Row, check, play, seconds};

/// Returns the waits after crashes 1, 2, …, for a process that repeatedly lives for a second.
fn waits(settings: &str, count: usize) -> Vec<String> {
    let script = format!(
        "{settings}; lives 1 each; set DeactivationGraceInterval infinite; 0 place r existing; until 100000"
    );
    let wait = |logged: &Logged| match &logged.event {
        Event::ProcessBackingOff { wait, .. } => {
            Some(wait.to_string().trim_end_matches('s').to_owned())
        }
        _ => None,
    };
    play(&script)
        .events
        .iter()
        .filter_map(wait)
        .take(count)
        .collect()
}

#[test]
fn a1_constant() {
    let settings = "set ActivationRetryBackoffExponentiationBase constant";
    assert_eq!(waits(settings, 5), ["10", "10", "10", "10", "10"]);
}

#[test]
fn linear() {
    let settings =
        "set ActivationRetryBackoffExponentiationBase 0; set ActivationMaxRetryInterval 45";
    assert_eq!(waits(settings, 6), ["10", "20", "30", "40", "45", "45"]);
}

#[test]
fn a4_and_a5_exponential_with_the_default_base() {
    let expected = [
        "15", "22.5", "33.75", "50.625", "75.938", "113.906", "170.859", "256.289", "384.434",
        "576.65", "864.976", "1297.463", "1946.195", "2919.293", "3600", "3600",
    ];
    assert_eq!(waits("", 16), expected);
}

#[test]
fn a6_exponential_with_a_cap() {
    let settings = "set ActivationRetryBackoffExponentiationBase 2; set ActivationRetryBackoffInterval 1; \
                    set ActivationMaxRetryInterval 60";
    assert_eq!(
        waits(settings, 8),
        ["2", "4", "8", "16", "32", "60", "60", "60"]
    );
}

#[test]
fn a7_a_raw_base_of_one_is_constant() {
    assert_eq!(BackoffMode::from_raw(1.0), Some(BackoffMode::Constant));
    assert_eq!(
        waits("set ActivationRetryBackoffExponentiationBase 1", 3),
        ["10", "10", "10"]
    );
}

#[test]
fn the_runtime_cuts_the_power_to_a_whole_number() {
    let expected = [
        "10", "20", "30", "50", "70", "110", "170", "250", "380", "570", "860", "1290", "1940",
        "2910", "3600",
    ];
    assert_eq!(waits("set Profile runtime64", 15), expected);
}

#[test]
fn extreme_settings_saturate() {
    let forever = Span::INFINITE;
    for failures in [0, 1, 1000, u32::MAX] {
        for interval in [
            Span::ZERO,
            Span::from_millis(1),
            Span::from_secs(u64::MAX / 2),
            forever,
        ] {
            for mode in [
                BackoffMode::Constant,
                BackoffMode::Linear,
                BackoffMode::Exponential(1.0),
                BackoffMode::Exponential(1.5),
                BackoffMode::Exponential(f64::MAX),
                BackoffMode::Exponential(f64::NAN),
                BackoffMode::Exponential(-3.0),
            ] {
                let wait = mode.wait(interval, failures);
                assert!(
                    failures == 0 || wait >= interval,
                    "{mode:?} {interval} {failures}: {wait}"
                );
                assert!(mode.truncated_wait(interval, failures) <= wait.max(interval));
            }
        }
    }
    assert_eq!(
        BackoffMode::Exponential(1.5).wait(Span::from_secs(10), u32::MAX),
        forever
    );
    assert_eq!(
        BackoffMode::Linear.wait(Span::from_secs(u64::MAX / 2), 3),
        forever
    );
}

#[test]
fn attempts() {
    check(&[
        Row {
            id: "A9",
            given: "activation fails always; set ActivationMaxFailureCount 5; 0 activate; until 550",
            watch: "activation give-up",
            expect: "0 activation; 10 activation; 30 activation; 60 activation; 100 activation; 100 give-up",
        },
        Row {
            id: "A9 with a cap",
            given: "activation fails always; set ActivationMaxFailureCount 5; set ActivationMaxRetryInterval 25; \
                    0 activate; until 550",
            watch: "activation give-up",
            expect: "0 activation; 10 activation; 30 activation; 55 activation; 80 activation; 80 give-up",
        },
        Row {
            id: "A13",
            given: "download fails always; set DeploymentMaxFailureCount 5; 0 activate; until 550",
            watch: "download give-up",
            expect: "0 download; 10 download; 30 download; 60 download; 100 download; 100 give-up",
        },
        Row {
            id: "downloads have an interval, a cap and a limit of their own",
            given: "set DeploymentRetryBackoffInterval 3; set DeploymentMaxRetryInterval 7; \
                    set DeploymentMaxFailureCount 5; set ActivationRetryBackoffInterval 50; \
                    set ActivationMaxRetryInterval 100; set ActivationMaxFailureCount 2; download fails always; \
                    0 activate; until 550",
            watch: "download give-up",
            expect: "0 download; 3 download; 9 download; 16 download; 23 download; 23 give-up",
        },
        Row {
            id: "A12: jitter of downloads and activations stays below the cap",
            given: "set DeploymentMaxRetryInterval 22; set ActivationMaxRetryInterval 12; download fails 2; \
                    download jitters 0 4 4; activation fails 2; activation jitters 0 1 9; 0 activate; until 100",
            watch: "download activation",
            expect: "0 download; 14 download; 36 download; 36 activation; 47 activation; 59 activation",
        },
        Row {
            id: "jitter of restarts stays below the cap",
            given: "set ActivationRetryBackoffExponentiationBase constant; set ActivationMaxRetryInterval 12; \
                    lives 5 5; restarts jitter 1 30; 0 place r existing; until 100",
            watch: "exit start",
            expect: "0 start; 5 exit; 16 start; 21 exit; 33 start",
        },
        Row {
            id: "so many internal errors do not count, and no more",
            given: "set RetryOnInternalError true; set MaxRetryOnInternalError 2; set ActivationMaxFailureCount 2; \
                    activation errs 9; 0 activate; until 100",
            watch: "activation give-up",
            expect: "0 activation; 10 activation; 20 activation; 30 activation; 30 give-up",
        },
    ]);
}

#[test]
fn a11_the_last_of_twenty_attempts() {
    let script =
        "activation fails always; set DeactivationScanInterval 5000; 0 activate; until 4000";
    let starts: Vec<String> = play(script)
        .events
        .iter()
        .filter(|logged| {
            matches!(
                logged.event,
                Event::AttemptStarted {
                    phase: servicefabric_emulator::hosting::Phase::Activation,
                    ..
                }
            )
        })
        .map(|logged| seconds(logged.at))
        .collect();
    assert_eq!(starts.len(), 20);
    assert_eq!(starts[19], "1900");
}
