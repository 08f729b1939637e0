use super::*;
use crate::cluster::{FabricName, Page, PageRequest};
use crate::hosting::Span;

#[test]
fn versions_are_decimal_numbers() {
    for (text, expected) in [
        ("6.0", Some(ApiVersion::new(6, 0))),
        ("6", Some(ApiVersion::new(6, 0))),
        ("6.4", Some(ApiVersion::new(6, 4))),
        ("6.40", Some(ApiVersion::new(6, 4))),
        ("06.0", Some(ApiVersion::new(6, 0))),
        ("6.0-preview", Some(ApiVersion::new(6, 0))),
        ("", None),
        (".", None),
        ("6.", None),
        (".4", None),
        ("-6.0", None),
        ("+6.0", None),
        ("6,0", None),
        ("6.0-beta", None),
        ("6.0.1", None),
        ("1e1", None),
        ("NaN", None),
        ("99999999999.0", None),
        ("6.00000001", None),
    ] {
        assert_eq!(ApiVersion::parse(text), expected, "{text}");
    }
    assert!(ApiVersion::parse("6.25") < ApiVersion::parse("6.4"));
    assert!(ApiVersion::parse("6.05") < ApiVersion::parse("6.1"));
}

#[test]
fn lengths_of_time_need_a_t() {
    for (text, expected) in [
        ("PT90S", Some(90_000)),
        ("PT1M30S", Some(90_000)),
        ("PT0H1M30S", Some(90_000)),
        ("PT1.5S", Some(1_500)),
        ("PT0.0259S", Some(25)),
        ("PT24H", Some(86_400_000)),
        ("P1DT0S", Some(86_400_000)),
        ("P1DT1H", Some(90_000_000)),
        ("PT0S", Some(0)),
        ("P1D", None),
        ("P1M", None),
        ("P1YT1S", None),
        ("P1MT1S", None),
        ("PT", None),
        ("P", None),
        ("", None),
        ("90", None),
        ("T90S", None),
        ("PT-90S", None),
        ("-PT90S", None),
        ("PT1.S", None),
        ("PT1M1H", None),
        ("PT90", None),
        ("PT90Sx", None),
        ("00:01:30", None),
        ("PT1111111111111111111S", None),
    ] {
        let read = parse_duration(text).ok().map(Span::as_millis);
        assert_eq!(read, expected, "{text}");
    }
}

#[test]
fn the_longest_time_span_is_infinite() {
    let infinite = "P10675199DT2H48M5.4775807S";
    assert_eq!(parse_duration(infinite).unwrap(), Span::INFINITE);
    assert_eq!(parse_duration("P99999999DT0S").unwrap(), Span::INFINITE);
    assert_eq!(print_duration(Span::INFINITE), infinite);
}

#[test]
fn lengths_of_time_are_written_as_the_gateway_does() {
    for (milliseconds, text) in [
        (0, "PT0H0M0S"),
        (90_000, "PT0H1M30S"),
        (1_500, "PT0H0M1.5S"),
        (3_600_025, "PT1H0M0.025S"),
        (90_061_000, "P1DT1H1M1S"),
    ] {
        let span = Span::from_millis(milliseconds);
        assert_eq!(print_duration(span), text);
        assert_eq!(parse_duration(text).unwrap(), span, "{text}");
    }
}

#[test]
fn arguments_are_decoded_and_the_first_counts() {
    let arguments = Arguments::parse(
        "ContinuationToken=fabric:/A%20b&MaxResults=2&MaxResults=3&Empty=&Bare&a+b=c+d",
    )
    .unwrap();
    assert_eq!(arguments.get("ContinuationToken"), Some("fabric:/A b"));
    assert_eq!(arguments.max_results().unwrap(), Some(2));
    assert_eq!(arguments.given("Empty"), None);
    assert_eq!(arguments.get("Bare"), Some(""));
    assert_eq!(arguments.get("a+b"), Some("c+d"));
    assert_eq!(arguments.get("maxresults"), None);
    assert!(Arguments::parse("x=%ff").is_err());
}

#[test]
fn numbers_and_flags_are_checked() {
    let arguments = Arguments::parse("n=-1&f=TRUE&g=yes&x=ten&MaxResults=-1").unwrap();
    assert!(arguments.flag("f", false).unwrap());
    assert!(!arguments.flag("absent", false).unwrap());
    assert!(arguments.flag("g", false).is_err());
    assert_eq!(arguments.number::<i32>("n").unwrap(), Some(-1));
    assert!(arguments.number::<u32>("n").is_err());
    assert!(arguments.number::<i32>("x").is_err());
    assert!(arguments.max_results().is_err());
    assert_eq!(
        Arguments::parse("MaxResults=0")
            .unwrap()
            .max_results()
            .unwrap(),
        None
    );
}

#[test]
fn ids_depend_on_the_version() {
    let name = FabricName::parse("fabric:/a/b/svc x").unwrap();
    assert_eq!(id_of(&name, ApiVersion::new(6, 0)), "a~b~svc%20x");
    assert_eq!(id_of(&name, ApiVersion::new(3, 0)), "a/b/svc%20x");
}

#[test]
fn replica_ids_are_numbers_with_a_sign() {
    assert_eq!(parse_replica_id("-9223372036854775808").unwrap(), i64::MIN);
    for text in ["", "0x1", "9223372036854775808", "1.0", " 1"] {
        assert!(parse_replica_id(text).is_err(), "{text}");
    }
}

/// Returns a page of the numbers below 5, like a cluster's list.
fn numbers(request: &PageRequest) -> Page<u32> {
    let first = match request.continuation_token.as_deref() {
        None | Some("") => 0,
        Some(token) => token.parse::<u32>().unwrap() + 1,
    };
    let limit = match request.max_results {
        0 => usize::MAX,
        limit => limit,
    };
    let items: Vec<u32> = (first..5).take(limit).collect();
    let continuation_token = match items.last() {
        Some(last) if *last < 4 => last.to_string(),
        _ => String::new(),
    };
    Page {
        items,
        continuation_token,
    }
}

fn page(query: &str, version: &str, faults: PageFaults) -> serde_json::Value {
    let arguments = Arguments::parse(query).unwrap();
    let version = ApiVersion::parse(version).unwrap();
    let answer = Paging::of(version, &arguments, true, faults)
        .unwrap()
        .answer(|request| Ok(numbers(request)), |number| *number)
        .unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn pages_follow_tokens_limits_and_versions() {
    let none = PageFaults::default();
    let forced = PageFaults {
        at_most: Some(2),
        repeat_token: false,
    };
    for (query, version, faults, expected) in [
        (
            "",
            "6.0",
            none,
            serde_json::json!({"ContinuationToken": "", "Items": [0, 1, 2, 3, 4]}),
        ),
        (
            "MaxResults=2",
            "6.0",
            none,
            serde_json::json!({"ContinuationToken": "1", "Items": [0, 1]}),
        ),
        (
            "MaxResults=5",
            "6.0",
            none,
            serde_json::json!({"ContinuationToken": "", "Items": [0, 1, 2, 3, 4]}),
        ),
        (
            "ContinuationToken=1&MaxResults=9",
            "6.0",
            none,
            serde_json::json!({"ContinuationToken": "", "Items": [2, 3, 4]}),
        ),
        (
            "",
            "6.0",
            forced,
            serde_json::json!({"ContinuationToken": "1", "Items": [0, 1]}),
        ),
        (
            "MaxResults=1",
            "6.0",
            forced,
            serde_json::json!({"ContinuationToken": "0", "Items": [0]}),
        ),
        (
            "ContinuationToken=3",
            "6.0",
            forced,
            serde_json::json!({"ContinuationToken": "", "Items": [4]}),
        ),
        (
            "MaxResults=1",
            "1.0",
            forced,
            serde_json::json!([0, 1, 2, 3, 4]),
        ),
    ] {
        assert_eq!(page(query, version, faults), expected, "{query} {version}");
    }
}

#[test]
fn a_page_of_nothing_goes_on_where_it_stands() {
    let nothing = PageFaults {
        at_most: Some(0),
        repeat_token: false,
    };
    let first = page("", "6.0", nothing);
    assert_eq!(first["Items"], serde_json::json!([]));
    let token = first["ContinuationToken"].as_str().unwrap();
    assert!(!token.is_empty());
    let query = format!("ContinuationToken={token}");
    let rest = page(&query, "6.0", PageFaults::default());
    assert_eq!(rest["Items"], serde_json::json!([0, 1, 2, 3, 4]));
    let middle = page("ContinuationToken=2", "6.0", nothing);
    assert_eq!(middle["ContinuationToken"], "2");
}

#[test]
fn a_token_can_be_repeated() {
    let repeat = PageFaults {
        at_most: Some(1),
        repeat_token: true,
    };
    assert_eq!(page("", "6.0", repeat)["ContinuationToken"], "0");
    let second = page("ContinuationToken=0", "6.0", repeat);
    assert_eq!(
        second,
        serde_json::json!({"ContinuationToken": "0", "Items": [1]})
    );
}

#[test]
fn a_page_is_no_longer_than_a_message() {
    let item = "x".repeat(1024 * 1024);
    let answer = Paging::of(
        ApiVersion::new(6, 0),
        &Arguments::default(),
        true,
        PageFaults::default(),
    )
    .unwrap()
    .answer(|request| Ok(numbers(request)), |_| item.clone())
    .unwrap();
    let page: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(page["Items"].as_array().unwrap().len(), 2);
    assert_eq!(page["ContinuationToken"], "1");
}

#[test]
fn errors_have_the_body_of_the_gateway() {
    let error = ApiError::invalid("no \"good\"");
    assert_eq!(error.status, 400);
    let body: serde_json::Value = serde_json::from_slice(&error.body()).unwrap();
    assert_eq!(
        body,
        serde_json::json!({"Error": {"Code": "E_INVALIDARG", "Message": "no \"good\""}})
    );
}
