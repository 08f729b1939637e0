//! Deactivation of unused packages: the rows `B…` of the specification.

use servicefabric_emulator::hosting::{DeploymentStatus, SlotStatus};

use crate::hosting::scenario::{Row, check, play};

const ALL: &str = "package-scheduled package-kept package-closing package-gone application-scheduled application-kept \
                   application-closing application-gone deactivation-failed rejected:r";
const GONE: &str = "package-scheduled package-gone application-scheduled application-gone";

#[test]
fn periodic() {
    check(&[
        Row {
            id: "B1",
            given: "601 activate; until 4000",
            watch: ALL,
            expect: "1800 application-scheduled; 1860 application-closing; 1860 package-closing; 1860 package-gone; \
                     1860 application-gone",
        },
        Row {
            id: "B2",
            given: "599 activate; until 4000",
            watch: GONE,
            expect: "1200 application-scheduled; 1260 package-gone; 1260 application-gone",
        },
        Row {
            id: "B3",
            given: "599 activate; 601 place r; until 2000",
            watch: "open:r package-scheduled application-scheduled package-gone application-gone",
            expect: "601 open:r",
        },
        Row {
            id: "B4",
            given: "599 activate; 601 place r; 1500 close r; until 4000",
            watch: GONE,
            expect: "1500 package-scheduled; 1560 package-gone; 1560 application-scheduled; 1620 application-gone",
        },
        Row {
            id: "B5",
            given: "download takes 1500; 0 place r; until 3000",
            watch: "download active open:r application-scheduled application-gone",
            expect: "0 download; 600 application-scheduled; 660 application-gone; 675 download; \
                     1800 application-scheduled; 1860 application-gone; 1875 download; 3000 application-scheduled",
        },
        Row {
            id: "B6",
            given: "set DeactivationScanInterval 1800; download takes 1500; 0 place r; until 4000",
            watch: "download active open:r application-scheduled package-scheduled",
            expect: "0 download; 1500 active; 1500 open:r",
        },
        Row {
            id: "B7",
            given: "600 activate; until 4000",
            watch: GONE,
            expect: "1200 application-scheduled; 1260 package-gone; 1260 application-gone",
        },
        Row {
            id: "an exclusive package that was never used goes with its application",
            given: "exclusive; 601 activate; until 4000",
            watch: GONE,
            expect: "1800 application-scheduled; 1860 package-gone; 1860 application-gone",
        },
        Row {
            id: "B8",
            given: "600.001 activate; until 2000",
            watch: GONE,
            expect: "1800 application-scheduled; 1860 package-gone; 1860 application-gone",
        },
        Row {
            id: "B17",
            given: "set DeactivationScanInterval infinite; 0 activate; until 1000000",
            watch: ALL,
            expect: "",
        },
        Row {
            id: "scans count from the start of the node",
            given: "100 restart; 650 activate; until 4000",
            watch: GONE,
            expect: "1300 application-scheduled; 1360 package-gone; 1360 application-gone",
        },
    ]);
}

#[test]
fn b3_stays_active() {
    let played = play("599 activate; 601 place r; until 2000");
    let packages = played.node.packages("fabric:/App");
    assert_eq!(packages[0].status, DeploymentStatus::Active);
    assert_eq!(packages[0].usage, 1);
}

#[test]
fn after_use() {
    check(&[
        Row {
            id: "B9",
            given: "0 place r; 100 close r; until 1000",
            watch: GONE,
            expect: "100 package-scheduled; 160 package-gone; 160 application-scheduled; 220 application-gone",
        },
        Row {
            id: "B10",
            given: "exclusive; 0 place r; 100 close r; until 1000",
            watch: GONE,
            expect: "100 package-scheduled; 101 package-gone; 101 application-scheduled; 161 application-gone",
        },
        Row {
            id: "a replica in time cancels",
            given: "0 place r; 100 close r; 159 place r; until 1000",
            watch: ALL,
            expect: "100 package-scheduled; 159 package-kept",
        },
        Row {
            id: "a replica at the very instant comes too late",
            given: "0 place r; 100 close r; 160 place r; until 165",
            watch: "package-closing package-gone open:r application-scheduled application-kept download",
            expect: "0 download; 0 open:r; 160 package-closing; 160 package-gone; 160 application-scheduled; \
                     160 download; 160 open:r; 160 application-kept",
        },
        Row {
            id: "B13",
            given: "deactivation takes 20; 0 place r; 100 close r; 165 place r; until 1000",
            watch: "package-scheduled package-kept package-closing package-gone rejected:r download open:r \
                    application-scheduled application-kept application-gone",
            expect: "0 download; 0 open:r; 100 package-scheduled; 160 package-closing; 165 rejected:r; \
                     180 package-gone; 180 application-scheduled; 180 download; 180 open:r; 180 application-kept",
        },
        Row {
            id: "B11",
            given: "exclusive; 0 place r; 100 close r; 100.5 place s; 200 close s; 201 place t; until 250",
            watch: "package-scheduled package-kept package-gone open:t download",
            expect: "0 download; 100 package-scheduled; 100.5 package-kept; 200 package-scheduled; 201 package-gone; \
                     201 download; 201 open:t",
        },
        Row {
            id: "B12",
            given: "deactivation takes 5; 0 place r; 100 close r; 160 place s; until 300",
            watch: "package-closing rejected:s package-gone open:s",
            expect: "160 package-closing; 160 rejected:s; 165 package-gone; 175 open:s",
        },
        Row {
            id: "B15: a slow download does not outlast the grace of its application",
            given: "download takes 30; 0 place r; 100 close r; 200 place s; until 400",
            watch: "download open:s package-gone application-gone",
            expect: "0 download; 160 package-gone; 200 download; 220 package-gone; 220 application-gone; \
                     230 download; 260 open:s",
        },
        Row {
            id: "failures are forgotten before a deactivation of the same instant",
            given: "set CodePackageContinuousExitFailureResetInterval 100; lives 10; \
                    set ActivationRetryBackoffExponentiationBase constant; 0 place r; 60 close r; until 130",
            watch: "reset package-closing",
            expect: "120 reset; 120 package-closing",
        },
        Row {
            id: "deactivations come before a scan of the same instant",
            given: "set DeactivationGraceInterval 600; 0 place r; 600 close r; until 1300",
            watch: "package-scheduled package-gone application-scheduled",
            expect: "600 package-scheduled; 1200 package-gone; 1200 application-scheduled",
        },
        Row {
            id: "B14",
            given: "0 place r; 0 place s; 100 close r; until 2000",
            watch: ALL,
            expect: "",
        },
        Row {
            id: "B16",
            given: "set DeactivationGraceInterval infinite; 0 place r; 100 close r; until 1000000",
            watch: ALL,
            expect: "",
        },
        Row {
            id: "B16 never used",
            given: "set DeactivationGraceInterval infinite; 0 activate; until 1000000",
            watch: ALL,
            expect: "",
        },
        Row {
            id: "B19",
            given: "deactivation fails 2; 0 place r; 100 close r; until 1000",
            watch: "package-closing deactivation-failed package-gone application-gone",
            expect: "160 package-closing; 160 deactivation-failed; 170 deactivation-failed; 180 package-gone; \
                     240 application-gone",
        },
        Row {
            id: "B19 exclusive: the waits grow with the grace",
            given: "exclusive; deactivation fails 3; 0 place r; 100 close r; until 1000",
            watch: "deactivation-failed package-gone",
            expect: "101 deactivation-failed; 102 deactivation-failed; 104 deactivation-failed; 107 package-gone",
        },
        Row {
            id: "processes that do not stop are killed",
            given: "deactivation takes infinite; 0 place r; 100 close r; until 1000",
            watch: "package-closing exit package-gone",
            expect: "160 package-closing; 340 exit; 340 package-gone",
        },
    ]);
}

#[test]
fn b14_and_b16_keep_the_package() {
    for script in [
        "0 place r; 0 place s; 100 close r; until 2000",
        "set DeactivationGraceInterval infinite; 0 place r; 100 close r; until 1000000",
    ] {
        let packages = play(script).node.packages("fabric:/App");
        assert_eq!(packages[0].status, DeploymentStatus::Active, "{script}");
    }
}

#[test]
fn a_replica_that_waits_can_be_closed() {
    let played = play("registers never; 0 place r; 100 close r; until 5000");
    assert!(played.node.replicas().is_empty());
    assert!(played.node.applications().is_empty());
    assert_eq!(played.node.next_due(), None);
}

#[test]
fn a_node_on_which_all_is_used_has_nothing_to_do() {
    let mut played = play("0 place r; until 5000");
    assert_eq!(played.node.next_due(), None);
    assert_eq!(played.node.replicas()[0].status, SlotStatus::Open);
    played
        .node
        .advance(servicefabric_emulator::hosting::Timestamp::from_millis(
            u64::MAX,
        ));
    assert!(played.node.take_events().is_empty());
}
