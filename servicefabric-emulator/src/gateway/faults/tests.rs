use super::*;

#[test]
fn stars_stand_for_anything() {
    for (pattern, text, expected) in [
        ("/Nodes", "/Nodes", true),
        ("/Nodes", "/Nodes/x", false),
        ("/Nodes*", "/Nodes", true),
        ("*", "", true),
        ("", "", true),
        ("", "x", false),
        ("/A*/$/GetServices", "/Applications/A/$/GetServices", true),
        (
            "/A*/$/GetServices",
            "/Applications/A/$/GetServices/x",
            false,
        ),
        ("*a*b*", "xxaxxbxx", true),
        ("*a*b*", "xxbxxaxx", false),
        ("**", "anything", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn a_pattern_full_of_stars_is_quick() {
    let pattern = "*a".repeat(2_000);
    let text = "a".repeat(1_999) + "b";
    assert!(!matches(&pattern, &text));
}

#[test]
fn faults_hit_as_often_as_they_say() {
    let faults = Faults::default();
    let fault = Fault::new("/Nodes*", FaultAction::fail(503, "X"))
        .method("get")
        .times(2)
        .after(1);
    faults.inject(fault).unwrap();
    assert_eq!(faults.take("POST", "/Nodes"), None);
    assert_eq!(faults.take("GET", "/Applications"), None);
    assert_eq!(faults.take("GET", "/Nodes"), None);
    assert!(faults.take("GET", "/Nodes/a").is_some());
    assert!(faults.take("GET", "/Nodes").is_some());
    assert_eq!(faults.take("GET", "/Nodes"), None);
    assert_eq!(faults.hits(), 2);
    assert!(faults.waiting().is_empty());
}

#[test]
fn faults_without_a_number_stay_until_they_are_cleared() {
    let faults = Faults::default();
    faults
        .inject(Fault::new("*", FaultAction::Empty { status: 500 }))
        .unwrap();
    for _ in 0..3 {
        assert!(faults.take("GET", "/").is_some());
    }
    faults.clear();
    assert_eq!(faults.take("GET", "/"), None);
}

#[test]
fn what_cannot_be_done_is_rejected() {
    let faults = Faults::default();
    assert_eq!(
        faults.fail_next(1, "*", 100, "X"),
        Err(FaultError::Status(100))
    );
    assert_eq!(
        faults.fail_next(1, "*", 1000, "X"),
        Err(FaultError::Status(1000))
    );
    let long = Duration::from_secs(3_601);
    assert_eq!(
        faults.delay_next(1, "*", long),
        Err(FaultError::Delay(3_601_000))
    );
    for _ in 0..MAX_FAULTS {
        faults.fail_next(1, "/x", 500, "X").unwrap();
    }
    assert_eq!(
        faults.fail_next(1, "/x", 500, "X"),
        Err(FaultError::TooMany)
    );
}

#[test]
fn what_would_never_hit_is_rejected() {
    let faults = Faults::default();
    assert_eq!(faults.fail_next(0, "*", 500, "X"), Err(FaultError::Times));
    for path in [
        "",
        "Nodes",
        "/Nodes?api-version=6.0",
        "/emulator",
        "/emulator/*",
    ] {
        let rejected = faults.fail_next(1, path, 500, "X");
        assert!(matches!(rejected, Err(FaultError::Path(..))), "{path}");
    }
    for path in ["*", "*/$/GetServices", "/emulatorX"] {
        faults.fail_next(1, path, 500, "X").unwrap();
    }
}

#[test]
fn faults_are_read_as_documented() {
    let fault: Fault = serde_json::from_str(
        r#"{"Path":"/Applications*","Times":3,"Action":{"Kind":"Fail","Status":503,"Code":"FABRIC_E_NOT_READY"}}"#,
    )
    .unwrap();
    assert_eq!(
        fault,
        Fault::new(
            "/Applications*",
            FaultAction::fail(503, "FABRIC_E_NOT_READY")
        )
        .times(3)
    );
    let wrong = r#"{"Path":"*","Action":{"Kind":"Fail","Status":503,"Code":"X","Times":1}}"#;
    assert!(serde_json::from_str::<Fault>(wrong).is_err());
}
