use std::time::Duration;

use super::*;

fn nanos(text: &str) -> u128 {
    match text.parse::<TimeSpan>() {
        Ok(span) => span.duration().as_nanos(),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn constant_format() {
    const SECOND: u128 = 1_000_000_000;
    for (text, expected) in [
        ("00:00:15", 15 * SECOND),
        ("00:00:5", 5 * SECOND), // O08
        ("1:2:3", 3_723 * SECOND),
        ("01:30", 5_400 * SECOND),
        ("23:59:59.9999999", 86_400 * SECOND - 100),
        ("00:00:00.5", SECOND / 2),
        ("1.00:00:00", 86_400 * SECOND),
        (" 00:00:01 ", SECOND),
        ("00:00:00", 0),
        ("10675199.02:48:05.4775807", 9_223_372_036_854_775_807 * 100),
    ] {
        assert_eq!(nanos(text), expected, "{text}");
    }
}

#[test]
fn numbers_with_units() {
    const MILLISECOND: u128 = 1_000_000;
    for (text, expected) in [
        ("15s", 15_000),
        ("250ms", 250),
        ("1m30s", 90_000),
        ("1m 30s", 90_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("1.5s", 1_500),
        ("0.5h", 1_800_000),
        ("15 s", 15_000),
        ("0s", 0),
    ] {
        assert_eq!(nanos(text), expected * MILLISECOND, "{text}");
    }
    assert_eq!(nanos("3us"), 3_000);
    assert_eq!(nanos("3µs"), 3_000);
}

#[test]
fn errors_say_what_is_wrong() {
    use ParseTimeSpanError::{Empty, Malformed, Negative, NoUnit, OutOfRange};

    for text in ["5", "1.5", "0"] {
        assert_eq!(text.parse::<TimeSpan>(), Err(NoUnit(text.into())));
    }
    for text in ["", "  "] {
        assert_eq!(text.parse::<TimeSpan>(), Err(Empty));
    }
    for text in ["-00:00:05", "-5s", "-5"] {
        assert_eq!(text.parse::<TimeSpan>(), Err(Negative(text.into())));
    }
    for text in [
        "24:00:00",
        "00:60:00",
        "00:00:60",
        "10675199.02:48:05.4775808",
        "10675200.00:00:00",
        "99999999999999999999d",
        "99999999999999999999:00",
        "18446744073709551615d",
    ] {
        assert_eq!(text.parse::<TimeSpan>(), Err(OutOfRange(text.into())));
    }
    for text in [
        "foobar",
        "1S",
        "s",
        "5x",
        "5s5",
        "1s1m",
        "1s1s",
        "1:2:3:4",
        ":",
        "::",
        "1:",
        "1:2:",
        "00:00:00.",
        "00:00:00.12345678",
        "+5s",
        "1.s",
        ".5s",
        "1..2s",
        "1e3s",
        "0x10s",
        "--5s",
        "١s",
        "5.00:00:00.1.1",
    ] {
        assert_eq!(text.parse::<TimeSpan>(), Err(Malformed(text.into())));
    }
}

#[test]
fn a_long_text_is_not_repeated_whole() {
    let error = "9".repeat(1_000_000).parse::<TimeSpan>().unwrap_err();
    assert!(error.to_string().len() < 200);
}

#[test]
fn a_bare_number_gets_both_spellings_as_suggestion() {
    let error = "5".parse::<TimeSpan>().unwrap_err();
    assert_eq!(error.suggestion(), "for seconds write `5s` or `00:00:05`");
}

#[test]
fn durations_are_rounded_to_ticks_and_limited() {
    assert_eq!(
        TimeSpan::new(Duration::from_nanos(199))
            .duration()
            .as_nanos(),
        100
    );
    assert_eq!(TimeSpan::new(Duration::MAX), TimeSpan::MAX);
    assert_eq!(TimeSpan::from_millis(1_500).to_string(), "00:00:01.5000000");
    assert_eq!(TimeSpan::MAX.to_string(), "10675199.02:48:05.4775807");
}

#[test]
fn json_is_text() {
    let span: TimeSpan = serde_json::from_str("\"1m30s\"").unwrap();
    assert_eq!(serde_json::to_string(&span).unwrap(), "\"00:01:30\"");
    assert!(serde_json::from_str::<TimeSpan>("5").is_err());
}
